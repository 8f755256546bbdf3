"""The gate in front of a retriever: what both frameworks' hosts share."""

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
"""Passages of which the one that holds most of the query's words counts."""


@dataclass(frozen=True, kw_only=True)
class ContextGate:
    """Decides by what the retriever has found, so that nothing is searched twice.

    Attributes
    ----------
    candidates
        The fitted gate.
    transform
        Applied to the query before it is embedded and searched; None leaves it as it is.
    coverage
        Word counts of the corpus, if the words shall count beside the similarity.
    drift
        Told the highest similarity of every query that is decided about, and warns.
    """

    candidates: VectorCandidates
    transform: Transform | None = None
    coverage: WordCoverage | None = None
    drift: DriftMonitor | None = None

    def prepare(self, query: str) -> str:
        """Return what is to be embedded and searched: unwrapped and transformed.

        Raises
        ------
        ValueError
            If the query is blank.
        """
        query = unwrapped(query)
        if not query.strip():
            raise ValueError("the query is blank: there is nothing to decide about")
        return query if self.transform is None else self.transform(query)

    def decide(
        self, query: str, similarities: Sequence[float], texts: Sequence[str] = ()
    ) -> RetrievalDecision:
        """Decide by the passages that were found for a prepared query.

        Parameters
        ----------
        query
            As the caller asked it.
        similarities
            Cosines of the passages found, the nearest among them, in any order; none where the
            index is empty.
        texts
            Their texts in the same order; needed with `coverage`.

        Raises
        ------
        ValueError
            If the query is blank, a similarity is not finite, or texts are missing.
        """
        words = unwrapped(query)
        if not words.strip():
            raise ValueError("the query is blank: there is nothing to decide about")
        share = None
        if self.coverage is not None and len(similarities):
            share = self._share(self.coverage, words, similarities, texts)
        decision = self.candidates.decide(similarities, coverage=share)
        if self.drift is not None and decision.similarity is not None:
            self.drift.observe(decision.similarity)
        return decision

    def save(self, path: str | Path) -> None:
        """Write the gate into one file; a crash midway leaves what was there before.

        Candidates and coverage are written. A transform, a tokeniser of one's own and a monitor
        are not: the first two have to be given to `load` again.
        """
        candidates = self.candidates
        write_gate(
            Path(path),
            candidates.fitted,
            candidates.policy,
            candidates.threshold,
            self.coverage,
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
        """Read a gate that `save` wrote.

        Parameters
        ----------
        path
            The file.
        embed
            The embedding model at hand, to be checked by `VectorCandidates.verify_embeddings`.
        transform
            As of the class; it is not saved.
        tokenizer
            That of the `WordCoverage`, if it was not its default.

        Raises
        ------
        IndexFormatError
            If the file is none that `save` wrote, or of a format this version cannot read.
        CorruptIndexError
            If it is damaged.
        EmbeddingMismatchError
            If `embed` is not the model of the fit.
        ValueError
            If the fit knows no text to try `embed` with, or `tokenizer` is missing or of no use.
        """
        fit, coverage = read_gate(Path(path), tokenizer)
        candidates = VectorCandidates.of(*fit)
        if embed is not None:
            candidates.verify_embeddings(embed)
        return cls(candidates=candidates, transform=transform, coverage=coverage)

    @staticmethod
    def _share(
        coverage: WordCoverage, query: str, similarities: Sequence[float], texts: Sequence[str]
    ) -> float:
        if len(texts) != len(similarities):
            raise ValueError(f"got {len(similarities)} similarities and {len(texts)} texts")
        nearest = sorted(range(len(texts)), key=lambda row: -similarities[row])[:DEPTH]
        return coverage.share(query, [texts[row] for row in nearest])
