"""A search on one state of an index: both legs, the pool, the fusion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found
from shared_core.checking import check_choice, check_count
from shared_core.forking import in_child
from shared_core.index.dense_query import DenseQuery
from shared_core.index.metadata import Where
from shared_core.index.select import distinct
from shared_core.index.sparse_query import SparseQuery
from shared_core.index.state import State
from shared_core.native import kernels
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.scoring.ranking import rank_pool
from shared_core.types import Fusion, Ranking

A = TypeVar("A")
B = TypeVar("B")

WORTH_A_THREAD = 30_000
"""Rows, and postings, from which the sparse leg repays the hand-over to a thread."""

WORTH_AHEAD = 4096
"""Rows from which searching a block's dense leg ahead, in a thread, repays the same."""

BLOCK = 16
"""Queries of a batch whose dense leg is searched at once, ahead of the rest in a thread."""

_beside = ThreadPoolExecutor(thread_name_prefix="posrag")


@in_child
def _renew_threads() -> None:
    """Replace the pool in a forked process, where its threads do not exist."""
    global _beside
    _beside = ThreadPoolExecutor(thread_name_prefix="posrag")


def _start(function: Callable[[A], B], argument: A) -> Future[B] | None:
    """Run a function beside the calling thread; None where no thread can be had.

    As there is none for a thread that goes on when the main one has ended.
    """
    try:
        return _beside.submit(function, argument)
    except RuntimeError:
        return None


def _map(function: Callable[[A], B], arguments: Sequence[A]) -> Iterable[B]:
    """Run a function for each argument, ahead in a thread where one can be had."""
    try:
        return _beside.map(function, arguments)
    except RuntimeError:
        return map(function, arguments)


@dataclass(slots=True)
class Search:
    """What to search, and how; see `HybridIndex.search`.

    Attributes
    ----------
    state
        Of the index.
    k, alpha, fusion
        As in `HybridIndex.search`.
    depth
        Rows that each leg fetches, at least `k`.
    allowed
        Rows that may be found, shape (rows,); None: all.
    """

    state: State
    k: int
    depth: int
    alpha: Alpha
    fusion: Fusion
    allowed: Bools | None

    @classmethod
    def checked(
        cls,
        state: State,
        k: int,
        fetch_k: int,
        alpha: Alpha,
        fusion: Fusion,
        where: Where,
    ) -> Search:
        """Return a search with the options of `HybridIndex.search`.

        Raises
        ------
        ValueError
            If one is out of range.
        """
        k = check_count(k, "k")
        check_choice(fusion, "fusion", Fusion)
        depth = max(k, check_count(fetch_k, "fetch_k"))
        return cls(state, k, depth, check_alpha(alpha), fusion, state.allowed(where))

    def one(self, text: str, vector: npt.ArrayLike) -> Ranking:
        """Answer one query."""
        if self._nothing_there():
            return self._nothing()
        state = self.state
        query = state.dense.unit(vector)
        words = self._words(text)
        long = state.size >= WORTH_A_THREAD and words.frequency >= WORTH_A_THREAD
        beside = _start(self._matching, words) if long else None
        dense = state.dense.query(query, self.depth, self.allowed)
        matching = self._matching(words) if beside is None else beside.result()
        return self._ranking(text, dense, words, matching)

    def many(
        self, texts: Sequence[str], vectors: Sequence[npt.ArrayLike] | npt.NDArray[np.floating]
    ) -> list[Ranking]:
        """Answer many queries, with the same results as `one` by one."""
        if len(texts) != len(vectors):
            raise ValueError(f"got {len(texts)} texts and {len(vectors)} vectors")
        if not texts or self._nothing_there():
            return [self._nothing() for _ in texts]
        view = self.state.dense
        queries = np.stack([view.unit(vector) for vector in vectors])
        blocks = [slice(start, start + BLOCK) for start in range(0, len(texts), BLOCK)]

        def dense(block: slice) -> list[DenseQuery]:
            return view.queries(queries[block], self.depth, self.allowed)

        ahead = map(dense, blocks) if self.state.size < WORTH_AHEAD else _map(dense, blocks)
        return [
            self._ranking(text, query, words := self._words(text), self._matching(words))
            for block, prepared in zip(blocks, ahead, strict=True)
            for text, query in zip(texts[block], prepared, strict=True)
        ]

    def _words(self, text: str) -> SparseQuery:
        sparse = self.state.sparse
        return SparseQuery(sparse, sparse.lexicon.lookup(text))

    def _matching(self, words: SparseQuery) -> Found:
        return words.best(self.depth, self.allowed)

    def _nothing_there(self) -> bool:
        allowed = self.allowed
        return self.state.size == 0 or (allowed is not None and not allowed.any())

    def _nothing(self) -> Ranking:
        return Ranking([], [], [], [], [], [], [], [], 0.0, self.fusion)

    def _ranking(
        self, text: str, dense: DenseQuery, words: SparseQuery, matching: Found
    ) -> Ranking:
        """Pool what both legs find, score the pool by both, fuse, and keep the best `k`."""
        state = self.state
        if kernels.built:
            pool = kernels.pool(dense.vectors, dense.vector, dense.best, *words.postings, matching)
            rows, by_meaning, by_words = pool
        else:
            rows = distinct(np.concatenate([dense.best[0], matching[0]]))
            by_meaning, by_words = dense.at(rows), words.at(rows)
        cosine = state.dense.metric == "cosine"
        nearest = float(by_meaning[by_meaning.argmax()]) if cosine else None
        return rank_pool(
            by_meaning,
            by_words,
            k=self.k,
            alpha=self.alpha,
            fusion=self.fusion,
            rows=rows,
            passages=state.passages,
            nearest=nearest,
            query=text.strip(),
        )
