"""Scores of rows by their vectors.

Every score comes from one kernel that takes each row alone (ours where it is built, else numpy's
`vecdot`), so a passage has the same score whichever leg found it.
"""

from __future__ import annotations

import numpy as np

from shared_core.arrays import Bools, Found, Rows, Scores, Vectors
from shared_core.index.select import best_of, reaching
from shared_core.native import kernels


def products(vectors: Vectors, vector: Vectors, rows: Rows) -> Scores:
    """Return the exact scores of `rows`, shape (len(rows),)."""
    if kernels.built:
        return kernels.vectors_at(vectors, vector, rows)
    return np.asarray(np.vecdot(vectors[rows], vector), np.float64)


def best_of_all(vectors: Vectors, vector: Vectors, k: int, allowed: Bools | None) -> Found:
    """Return the best `k` of the allowed rows."""
    if kernels.built:
        return kernels.best_vectors(kernels.Scan(vectors), vector[None], k, allowed)[0]
    scores = np.vecdot(vectors, vector)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    rows = reaching(scores, k)
    if allowed is not None:
        rows = rows[allowed[rows]]
    return best_of(rows, scores[rows], k)
