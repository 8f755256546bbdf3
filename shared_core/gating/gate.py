"""The gate in front of a retriever, shared by both frameworks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from shared_core.arrays import Embed
from shared_core.gating.candidates import VectorCandidates
from shared_core.gating.coverage import WordCoverage
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.drift import DriftMonitor
from shared_core.gating.files import read_gate, write_gate
from shared_core.gating.transforms import Transform, unwrapped
from shared_core.types import Tokenizer

DEPTH = 5
"""Nearest passages searched for the one that holds most of the query's words."""


@dataclass(frozen=True, kw_only=True)
class ContextGate:
    """Decides by the passages that the retriever has found, so nothing is searched twice.

    Attributes
    ----------
    candidates
        The fitted gate.
    transform
        Applied to the query before it is embedded and searched; None leaves it as it is.
    coverage
        Word counts of the corpus, if words count in addition to the similarity.
    drift
        Observes the highest similarity of every query, and warns of drift.
    """

    candidates: VectorCandidates
    transform: Transform | None = None
    coverage: WordCoverage | None = None
    drift: DriftMonitor | None = None

    def prepare(self, query: str) -> str:
        """Return the text to embed and search: the query, unwrapped and transformed.

        Raises
        ------
        ValueError
            If the query is blank or not a string.
        """
        query = _asked(query)
        return query if self.transform is None else self.transform(query)

    def decide(
        self, query: str, similarities: Sequence[float], texts: Sequence[str] = ()
    ) -> RetrievalDecision:
        """Decide by the passages found for a prepared query.

        Parameters
        ----------
        query
            The query before `prepare`.
        similarities
            Cosines of the passages found, including the nearest, in any order; empty if the index
            is.
        texts
            Their texts in the same order; needed with `coverage`.

        Raises
        ------
        ValueError
            If the query is blank or not a string, a similarity is not finite, or texts are missing.
        """
        words = _asked(query)
        share = None
        if self.coverage is not None and len(similarities):
            share = self._share(self.coverage, words, similarities, texts)
        decision = self.candidates.decide(similarities, coverage=share)
        if self.drift is not None and decision.similarity is not None:
            self.drift.observe(decision.similarity)
        return decision

    def save(self, path: str | Path) -> None:
        """Write the gate into one file, atomically.

        Candidates and coverage are written. A transform, a custom tokenizer and a monitor are
        not: give the first two to `load` again, which asks for them.

        Raises
        ------
        ValueError
            If an id is not a string.
        """
        candidates = self.candidates
        write_gate(
            Path(path),
            candidates.fitted,
            candidates.policy,
            candidates.threshold,
            self.coverage,
            transformed=self.transform is not None,
        )

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        embed: Embed | None = None,
        transform: Transform | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Read a gate written by `save`.

        Parameters
        ----------
        path
            The file.
        embed
            The present embedding model, checked by `VectorCandidates.verify_embeddings`.
        transform
            As in the class; it is not saved. Needed if the gate that was saved had one.
        tokenizer
            The tokenizer of the `WordCoverage`, unless it is the default.

        Raises
        ------
        IndexFormatError
            If the file is not a saved gate, or has a format this version cannot read.
        CorruptIndexError
            If it is damaged.
        EmbeddingMismatchError
            If `embed` is not the model of the fit.
        ValueError
            If the fit has no text to check `embed` with, `transform` is missing, or `tokenizer` is
            missing or not needed.
        """
        fit, coverage = read_gate(Path(path), tokenizer, transformed=transform is not None)
        candidates = VectorCandidates.of(*fit)
        if embed is not None:
            candidates.verify_embeddings(embed)
        return cls(candidates=candidates, transform=transform, coverage=coverage)

    @staticmethod
    def _share(
        coverage: WordCoverage, query: str, similarities: Sequence[float], texts: Sequence[str]
    ) -> float:
        if len(texts) != len(similarities):
            raise ValueError(
                f"got {len(similarities)} similarities and {len(texts)} texts: give one text each"
            )
        nearest = sorted(range(len(texts)), key=lambda row: -similarities[row])[:DEPTH]
        return coverage.share(query, [texts[row] for row in nearest])


def _asked(query: object) -> str:
    """Return the query unwrapped; ValueError if it is blank or no string."""
    if not isinstance(query, str):
        raise ValueError(f"the question must be a string, got {type(query).__name__}")
    words = unwrapped(query)
    if not words.strip():
        raise ValueError("the query is blank: there is nothing to decide about")
    return words
