"""The retrieval gate in front of a retriever, shared by both frameworks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed
from shared_core.gating.candidates import VectorCandidates
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.files import read_gate, write_gate
from shared_core.gating.prompts import Transform, unwrapped
from shared_core.gating.words import WordCoverage
from shared_core.types import Tokenizer
from shared_core.vectors import query_similarities

ALIKE = 0.9999
"""Cosine from which the embeddings of one text as query and as passage count as equal."""

Vector: TypeAlias = list[float]


DEPTH = 5
"""Nearest passages searched for the one that holds most of the query's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """The functions of an embedding model.

    Attributes
    ----------
    query, aquery
        Text of a query -> its vector; the second is awaited.
    texts, atexts
        Texts of passages -> their vectors.
    """

    query: Callable[[str], Vector]
    texts: Callable[[list[str]], list[Vector]]
    aquery: Callable[[str], Awaitable[Vector]]
    atexts: Callable[[list[str]], Awaitable[list[Vector]]]

    def queries(self, queries: Sequence[str]) -> npt.ArrayLike:
        """Embed many queries, at least one.

        The models of the frameworks embed passages in batches and queries one by one. If the first
        query has the same embedding as a query and as a passage, all are embedded in a batch.
        """
        first = np.asarray(self.query(queries[0]), np.float64)
        if len(queries) == 1:
            return first[None]
        as_text = np.asarray(self.texts([queries[0]])[0], np.float64)
        lengths = float(np.linalg.norm(first) * np.linalg.norm(as_text))
        if first @ as_text >= ALIKE * lengths:
            return self.texts([*queries])
        return np.array([first, *(self.query(query) for query in queries[1:])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a retriever found for a query.

    It may have rewritten the query or searched for several, but the gate judges the one that it
    was given: so each explanation says of which text its cosine is.

    Attributes
    ----------
    query
        The query before `ContextGate.prepare`.
    searched
        The text that was to be searched.
    embedded
        The text that was to be embedded for it, mostly the same; None for a vector without one.
        White space around it is ignored.
    details
        From `shared_core.Arrangement.explain`, passage by passage: ``dense``, and ``nearest`` and
        ``query`` if that is a cosine.
    texts
        The passages' texts.
    """

    query: str
    searched: str
    embedded: str | None
    details: Sequence[Mapping[str, Any]]
    texts: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ContextGate:
    """Decides by the passages that the retriever has found, so nothing is searched twice.

    Attributes
    ----------
    candidates
        The fitted gate.
    transform
        Applied to the query before it is embedded and searched; None leaves it as it is. The
        candidates have to be fitted on questions transformed alike, as `fit_gate` does it.
    coverage
        Word counts of the corpus, if words count in addition to the similarity.
    """

    candidates: VectorCandidates
    transform: Transform | None = None
    coverage: WordCoverage | None = None

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
        words, share = _asked(query), None
        if self.coverage is not None and len(similarities):
            if len(texts) != len(similarities):
                raise ValueError(
                    f"got {len(similarities)} similarities and {len(texts)} texts: give one text "
                    "each"
                )
            nearest = sorted(range(len(texts)), key=lambda row: -similarities[row])[:DEPTH]
            share = self.coverage.share(words, [texts[row] for row in nearest])
        return self.candidates.decide(similarities, coverage=share)

    def decide_found(self, found: Found, embedder: Callable[[], Embedder]) -> RetrievalDecision:
        """Decide by what a retriever found: by the cosines it tells, or by embedding its texts.

        Parameters
        ----------
        found
            What was found for a prepared query.
        embedder
            Called for the model only if a passage tells no cosine, or one to another text.

        Raises
        ------
        ValueError
            As `decide`, and if a vector is not finite or a shape is wrong.
        """
        decision = self._by_explanations(found)
        if decision is None:
            model = embedder()
            vector, vectors = model.query(found.searched), model.texts([*found.texts])
            decision = self._by_vectors(found, vector, vectors)
        return decision

    async def adecide_found(
        self, found: Found, embedder: Callable[[], Embedder]
    ) -> RetrievalDecision:
        """Async version of `decide_found`; the model is awaited."""
        decision = self._by_explanations(found)
        if decision is None:
            model = embedder()
            vector = await model.aquery(found.searched)
            decision = self._by_vectors(found, vector, await model.atexts([*found.texts]))
        return decision

    def _by_explanations(self, found: Found) -> RetrievalDecision | None:
        """Return None unless every passage tells a cosine to the text that was searched."""
        text = None if found.embedded is None else found.embedded.strip()
        details, texts = found.details, [*found.texts]
        if not all("nearest" in detail and detail.get("query") == text for detail in details):
            return None
        similarities = [float(detail["dense"]) for detail in details]
        nearest = max((float(detail["nearest"]) for detail in details), default=None)
        if nearest is not None and nearest > max(similarities):  # it need not be among these
            similarities.append(nearest)
            texts.append("")
        return self.decide(found.query, similarities, texts)

    def _by_vectors(
        self, found: Found, vector: npt.ArrayLike, vectors: npt.ArrayLike
    ) -> RetrievalDecision:
        similarities = query_similarities(vector, vectors, len(found.texts))
        return self.decide(found.query, similarities, found.texts)

    def save(self, path: str | Path) -> None:
        """Write the gate into one file, atomically.

        Candidates and coverage are written. A transform and a custom tokenizer are not: give them
        to `load` again, which asks for them.
        """
        transformed = self.transform is not None
        write_gate(Path(path), self.candidates, self.coverage, transformed=transformed)

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
            If the file is not a saved gate, or has another format.
        CorruptIndexError
            If it is damaged.
        EmbeddingMismatchError
            If `embed` is not the model of the fit.
        ValueError
            If `transform` or `tokenizer` is missing or not needed.
        """
        transformed = transform is not None
        candidates, coverage = read_gate(Path(path), tokenizer, transformed=transformed)
        if embed is not None:
            candidates.verify_embeddings(embed)
        return cls(candidates=candidates, transform=transform, coverage=coverage)


def _asked(query: object) -> str:
    """Return the query unwrapped; ValueError if it is blank or no string."""
    if not isinstance(query, str):
        raise ValueError(f"the question must be a string, got {type(query).__name__}")
    words = unwrapped(query)
    if not words.strip():
        raise ValueError("the query is blank: there is nothing to decide about")
    return words
