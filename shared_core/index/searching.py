"""A search on one state of an index: both legs, and the pool of what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shared_core.arrays import Bools, Found, Vectors
from shared_core.index.select import distinct
from shared_core.index.sparse.query import SparseQuery
from shared_core.index.state import State
from shared_core.types import Pool, Query

BLOCK = 16
"""Queries that both legs search for at once: a pass over the vectors serves all of them."""

NOTHING = np.zeros(0)


def pools(
    state: State, queries: Sequence[Query], depth: int, allowed: Bools | None
) -> Iterator[Pool]:
    """Yield for each query what either leg finds, scored by both.

    Parameters
    ----------
    state
        What is searched.
    queries
        With vectors.
    depth
        Rows that each leg fetches, at least 1.
    allowed
        Rows that may be found, shape (rows,), no deleted ones; None: all.

    Raises
    ------
    ValueError
        If a text is not a string, or a vector does not fit.
    """
    if state.size == 0 or (allowed is not None and not allowed.any()):
        for query in queries:
            yield Pool((), NOTHING, NOTHING, query=query.text.strip())
        return
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        vectors = np.stack([state.dense.unit(query.vector) for query in block])
        lookup = state.sparse.lexicon.lookup
        words = [SparseQuery(state.sparse, lookup(query.text)) for query in block]
        near = state.dense.best(vectors, depth, allowed)
        matching = SparseQuery.best_of_each(words, depth, allowed)
        yield from map(_pool, [state] * len(block), block, vectors, words, near, matching)


def _pool(
    state: State, query: Query, vector: Vectors, words: SparseQuery, near: Found, matching: Found
) -> Pool:
    rows = distinct(np.concatenate([near[0], matching[0]]))
    dense = state.dense.scores_of_rows(vector, rows)
    return Pool(
        [state.passages[row] for row in rows.tolist()],
        dense,
        words.at(rows),
        nearest=float(dense.max()) if state.dense.metric == "cosine" else None,
        query=query.text.strip(),
    )
