"""A search on one snapshot of an index: both legs, and the pool of what they find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shared_core.arrays import Bools, Found, Vectors
from shared_core.index.select import distinct
from shared_core.index.snapshot import HybridSnapshot
from shared_core.index.sparse.query import SparseQuery, sparse_top_k
from shared_core.types import Pool, Query

BLOCK = 16
"""Queries that both legs search for at once: a pass over the vectors serves all of them."""

NOTHING = np.zeros(0)


def pools(
    snapshot: HybridSnapshot, queries: Sequence[Query], depth: int, allowed: Bools | None
) -> Iterator[Pool]:
    """Yield for each query what either leg finds, scored by both.

    Parameters
    ----------
    snapshot
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
    if snapshot.size == 0 or (allowed is not None and not allowed.any()):
        for query in queries:
            yield Pool((), NOTHING, NOTHING, query=query.text.strip())
        return
    for start in range(0, len(queries), BLOCK):
        block = queries[start : start + BLOCK]
        vectors = np.stack([snapshot.dense.unit(query.vector) for query in block])
        words = [SparseQuery(snapshot.sparse, query.text) for query in block]
        dense_hits = snapshot.dense.top_k(vectors, depth, allowed)
        sparse_hits = sparse_top_k(words, depth, allowed)
        for each in zip(block, vectors, words, dense_hits, sparse_hits, strict=True):
            yield _pool(snapshot, *each)


def _pool(
    snapshot: HybridSnapshot,
    query: Query,
    vector: Vectors,
    words: SparseQuery,
    dense_hits: Found,
    sparse_hits: Found,
) -> Pool:
    rows = distinct(np.concatenate([dense_hits[0], sparse_hits[0]]))
    dense = snapshot.dense.scores_of_rows(vector, rows)
    return Pool(
        [snapshot.passages[row] for row in rows.tolist()],
        dense,
        words.scores_of_rows(rows),
        nearest=float(dense.max()) if snapshot.dense.metric == "cosine" else None,
        query=query.text.strip(),
    )
