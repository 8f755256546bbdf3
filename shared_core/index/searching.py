"""A search on one state of an index: both legs, the pool, the fusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found, Vectors
from shared_core.checking import check_choice, check_count
from shared_core.index.beside import BackgroundCall, map_ahead
from shared_core.index.dense.products import products
from shared_core.index.metadata import Where
from shared_core.index.select import distinct
from shared_core.index.sparse.query import SparseQuery
from shared_core.index.state import State
from shared_core.native import kernels
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.scoring.ranking import fusing_options, rank_pool, ranking_of
from shared_core.types import Fusion, Ranking

WORTH_A_THREAD = 30_000
"""Rows, and postings, from which running the sparse leg in a thread pays off."""

WORTH_AHEAD = 4096
"""Rows from which searching blocks of queries ahead in threads pays off."""

BLOCK = 16
"""Queries of a batch that both legs search for at once."""

Block: TypeAlias = tuple[Sequence[str], list[SparseQuery], Vectors]
"""Texts, words and vectors, of shape (n, dim), of some queries."""

Legs: TypeAlias = tuple[Sequence[str], list[SparseQuery], Vectors, list[Found], list[Found]]
"""Texts, words and vectors, and what either leg has found for them."""


@dataclass(slots=True)
class Search:
    """What to search, and how; see `HybridIndex.search`.

    Attributes
    ----------
    state
        The state of the index.
    k, alpha, fusion
        As in `HybridIndex.search`.
    depth
        Rows that each leg fetches, at least `k`.
    allowed
        Rows that may be found, shape (rows,), no deleted ones; None: all.
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
        query = self.state.dense.unit(vector)
        words = self._words(text)
        if self.state.size < WORTH_A_THREAD or words.frequency < WORTH_A_THREAD:
            return self._ranking(text, words, query)
        background = BackgroundCall(partial(self._matching, words))
        near = self._near(query)
        return self._ranking(text, words, query, near, background.result())

    def many(
        self, texts: Sequence[str], vectors: Sequence[npt.ArrayLike] | npt.NDArray[np.floating]
    ) -> list[Ranking]:
        """Answer many queries, with the same results as `one` by one."""
        if len(texts) != len(vectors):
            raise ValueError(f"got {len(texts)} texts and {len(vectors)} vectors; give one each")
        if len(texts) == 0 or self._nothing_there():  # an array of texts has no truth value
            return [self._nothing() for _ in texts]
        if self.state.size < WORTH_AHEAD:
            return [self.one(text, vector) for text, vector in zip(texts, vectors, strict=True)]
        unit = self.state.dense.unit
        queries = np.stack([unit(vector) for vector in vectors])
        found = map_ahead(self._legs, self._blocks(texts, queries))
        return [ranking for legs in found for ranking in map(self._ranking, *legs)]

    def _blocks(self, texts: Sequence[str], queries: Vectors) -> Iterator[Block]:
        for start in range(0, len(texts), BLOCK):
            block = slice(start, start + BLOCK)
            yield texts[block], [self._words(text) for text in texts[block]], queries[block]

    def _legs(self, block: Block) -> Legs:
        texts, words, queries = block
        near = self.state.dense.best(queries, self.depth, self.allowed)
        matching = SparseQuery.best_of_each(words, self.depth, self.allowed)
        return texts, words, queries, near, matching

    def _words(self, text: str) -> SparseQuery:
        sparse = self.state.sparse
        return SparseQuery(sparse, sparse.lexicon.lookup(text))

    def _near(self, query: Vectors) -> Found:
        return self.state.dense.best(query[None], self.depth, self.allowed)[0]

    def _matching(self, words: SparseQuery) -> Found:
        return words.best(self.depth, self.allowed)

    def _nothing_there(self) -> bool:
        allowed = self.allowed
        return self.state.size == 0 or (allowed is not None and not allowed.any())

    def _nothing(self) -> Ranking:
        return Ranking([], [], [], [], [], [], [], [], 0.0, self.fusion)

    def _ranking(
        self,
        text: str,
        words: SparseQuery,
        query: Vectors,
        near: Found | None = None,
        matching: Found | None = None,
    ) -> Ranking:
        """Pool what both legs find, score the pool by both, fuse, and keep the best `k`.

        A leg is searched here where what it finds is not given.
        """
        dense, passages, text = self.state.dense, self.state.passages, text.strip()
        cosine = dense.metric == "cosine"
        if kernels.built:
            if near is None and not dense.scanned(self.allowed):
                near = self._near(query)
            how = fusing_options(self.k, self.alpha, self.fusion)
            columns, best = kernels.answer(
                dense.scan, query, *words.postings, near, matching, self.depth, self.allowed, how
            )
            nearest = best if cosine else None
            return ranking_of(columns, self.fusion, passages, nearest, text)
        near = self._near(query) if near is None else near
        matching = self._matching(words) if matching is None else matching
        rows = distinct(np.concatenate([near[0], matching[0]]))
        by_meaning, by_words = products(dense.vectors, query, rows), words.at(rows)
        return rank_pool(
            by_meaning,
            by_words,
            k=self.k,
            alpha=self.alpha,
            fusion=self.fusion,
            rows=rows,
            passages=passages,
            nearest=float(by_meaning.max()) if cosine else None,
            query=text,
        )
