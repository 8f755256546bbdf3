"""A query against the vectors: the best rows, and the exact score of any row.

Every score comes from one kernel that takes each row by itself (numpy's `vecdot`), so a passage
has the same score however it was found: alone or by the sparse leg.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Rows, Scores, Vectors
from shared_core.index.select import reaching


class DenseQuery(Protocol):
    """A query that is prepared."""

    def top(self, k: int) -> Rows:
        """Return the best `k` rows, ascending by row; ties at the end go to earlier rows."""

    def at(self, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),), higher is better."""


class ScannedQuery:
    """A query that has scored every row.

    Parameters
    ----------
    scores
        Shape (rows,).
    allowed
        Rows that may be found, shape (rows,).
    """

    def __init__(self, scores: npt.NDArray[np.float32], allowed: Bools | None = None) -> None:
        self._scores = scores
        self._allowed = allowed

    def top(self, k: int) -> Rows:
        """See `DenseQuery`."""
        rows = self.near(k)
        return rows if rows.size <= k else _best(rows, self._scores[rows], k)

    def near(self, k: int) -> Rows:
        """Return the allowed rows that score like the best `k` at least, ascending."""
        if self._allowed is None:
            return reaching(self._scores, k)
        rows = reaching(np.where(self._allowed, self._scores, -np.inf), k)
        return rows[self._allowed[rows]]

    def at(self, rows: Rows) -> Scores:
        """See `DenseQuery`."""
        return self._scores[rows].astype(np.float64)


class PreselectedQuery:
    """A query that scores only rows chosen before.

    Parameters
    ----------
    vectors
        Shape (rows, dim).
    query
        Shape (dim,).
    chosen
        Rows that may be found, ascending.
    """

    def __init__(self, vectors: Vectors, query: Vectors, chosen: Rows) -> None:
        self._vectors = vectors
        self._query = query
        self._chosen = chosen
        self._scores = self.at(chosen)

    def top(self, k: int) -> Rows:
        """See `DenseQuery`."""
        return _best(self._chosen, self._scores, k)

    def lowest(self, k: int) -> float:
        """Return the score of the k-th best row chosen; minus infinity if they are fewer."""
        scores = self._scores
        return float(np.partition(scores, -k)[-k]) if scores.size >= k else -np.inf

    def at(self, rows: Rows) -> Scores:
        """See `DenseQuery`."""
        scores: Vectors = np.vecdot(self._vectors[rows], self._query)
        return scores.astype(np.float64)


def _best(rows: Rows, scores: npt.NDArray[np.floating], k: int) -> Rows:
    best = rows[(-scores).argsort(kind="stable")[:k]]
    best.sort()
    return best
