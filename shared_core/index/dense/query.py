"""A query against the vectors: the best rows, and the exact score of any row.

Every score comes from one kernel that takes each row alone (ours where it is built, else numpy's
`vecdot`), so a passage has the same score whichever leg found it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Bools, Found, Rows, Scores, Vectors
from shared_core.index.select import best_of, reaching
from shared_core.native import kernels


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A query with the rows that were found for it.

    Attributes
    ----------
    vectors
        Shape (rows, dim).
    vector
        The query, shape (dim,).
    best
        The rows found and their scores; ties for the last places went to earlier rows.
    """

    vectors: Vectors
    vector: Vectors
    best: Found

    def at(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),), higher is better."""
        return products(self.vectors, self.vector, rows)


def products(vectors: Vectors, vector: Vectors, rows: Rows) -> Scores:
    """Return the exact scores of `rows`, shape (len(rows),)."""
    if kernels.built:
        return kernels.vectors_at(vectors, vector, rows)
    return np.asarray(np.vecdot(vectors[rows], vector), np.float64)


def best_of_all(vectors: Vectors, vector: Vectors, k: int, allowed: Bools | None) -> Found:
    """Return the best `k` of the allowed rows."""
    if kernels.built:
        return kernels.best_vectors(vectors, vector[None], k, allowed)[0]
    scores = np.vecdot(vectors, vector)
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    rows = reaching(scores, k)
    if allowed is not None:
        rows = rows[allowed[rows]]
    return best_of(rows, scores[rows], k)
