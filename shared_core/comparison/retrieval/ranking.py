"""Ranks the passages that each question is answered from, best first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.retrieval.pipelines import (
    ALPHAS,
    GIVEN,
    SPARSE,
    Pipeline,
    RankedPassages,
)
from shared_core.comparison.retrieval.spans import as_spans, neighbours_of
from shared_core.index.hybrid import HybridIndex
from shared_core.index.sparse.bm25_index import BM25Index
from shared_core.neighbour_spans import PassageNeighbours
from shared_core.scoring.fusion import Alpha
from shared_core.types import Passage

Reranker: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]
"""(question, texts) -> relevance of each text; higher is better."""


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Ranks the passages of some data for its questions.

    Attributes
    ----------
    data
        Questions and passages.
    embed
        For the pipelines with a dense leg.
    reranker
        For the pipelines with ``+rerank``.
    fetch_k
        Depth of each leg's search before fusion, and of the ranking that is reranked.
    """

    data: ComparisonData
    embed: Embed | None
    reranker: Reranker | None
    fetch_k: int

    def rankings(self, pipeline: Pipeline, k: int) -> list[RankedPassages]:
        """Return the best `k` passages of each question, not expanded, or as many as there are.

        Raises
        ------
        ValueError
            If the pipeline needs what is not given, or the reranker does not return one number
            per text.
        """
        if not pipeline.reranked:
            return self._found(pipeline.base, k)
        if self.reranker is None:
            raise ValueError(
                f"pipeline {pipeline.name!r} needs a reranker; give one (reranker=, or --reranker)"
            )
        pools = self._found(pipeline.base, max(k, self.fetch_k))
        return [
            _reranked(self.reranker, question.question, pool.passages).top(k)
            for question, pool in zip(self.data.questions, pools, strict=True)
        ]

    def expanded(self, ranked: RankedPassages) -> RankedPassages:
        """Return ranked passages as spans with their neighbours, the best span first.

        Raises
        ------
        ValueError
            If a passage of the collection does not give its place in its document.
        """
        return as_spans(ranked, self._neighbours)

    def _found(self, base: str, k: int) -> list[RankedPassages]:
        if base == GIVEN:
            return self._given(k)
        return self._by_words(k) if base == SPARSE else self._searched(ALPHAS[base], k)

    def _given(self, k: int) -> list[RankedPassages]:
        questions = self.data.questions
        for question in questions:
            if not question.ranking:
                raise ValueError(
                    f"pipeline 'given' takes each question's own documents, and "
                    f"{question.question!r} has none"
                )
        return [
            RankedPassages(passages=tuple(self.data.by_id[id] for id in each.ranking[:k]))
            for each in questions
        ]

    def _by_words(self, k: int) -> list[RankedPassages]:
        found = (self._words.search(question, k) for question in self._texts)
        return [
            RankedPassages(
                passages=tuple(self.data.passages[row] for row in rows),
                scores=tuple(scores.tolist()),
            )
            for rows, scores in found
        ]

    def _searched(self, alpha: Alpha, k: int) -> list[RankedPassages]:
        found = self._index.search_batch(
            self._texts, self._vectors, k=k, fetch_k=self.fetch_k, alpha=alpha
        )
        return [
            RankedPassages(passages=tuple(each.passages), scores=tuple(each.scores))
            for each in found
        ]

    @cached_property
    def _neighbours(self) -> PassageNeighbours:
        return neighbours_of(self.data.passages)

    @property
    def _texts(self) -> list[str]:
        return [question.question for question in self.data.questions]

    @cached_property
    def _words(self) -> BM25Index:
        return BM25Index.from_texts(passage.text for passage in self.data.passages)

    @cached_property
    def _index(self) -> HybridIndex:
        index = HybridIndex()
        index.add(self.data.passages, self._embedded([each.text for each in self.data.passages]))
        return index

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float32]:
        return self._embedded(self._texts)

    def _embedded(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.embed is None:
            raise ValueError(
                "pipelines with a dense leg need embed=, a function from texts to vectors; "
                f"{SPARSE!r} does not"
            )
        return np.asarray(self.embed(texts), np.float32)


def _reranked(reranker: Reranker, question: str, pool: Sequence[Passage]) -> RankedPassages:
    scores = np.asarray(reranker(question, [passage.text for passage in pool]), np.float64)
    if scores.shape != (len(pool),) or not np.isfinite(scores).all():
        raise ValueError(
            f"the reranker must return one finite number for each of {len(pool)} texts, "
            f"got shape {scores.shape}"
        )
    order = np.argsort(-scores, kind="stable")
    return RankedPassages(
        passages=tuple(pool[at] for at in order), scores=tuple(scores[order].tolist())
    )
