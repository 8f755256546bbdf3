"""Types of the arrays of the core and of embedding models; few rows out of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int32]
Rows: TypeAlias = npt.NDArray[np.intp]
Scores: TypeAlias = npt.NDArray[np.float64]
Vectors: TypeAlias = npt.NDArray[np.float32]

Found: TypeAlias = tuple[Rows, Scores]
"""Rows, ascending, and their scores, each of shape (n,)."""

Embed: TypeAlias = Callable[[Sequence[str]], npt.ArrayLike]
"""An embedding model: texts to vectors, shape (len(texts), dim)."""


def top_k(rows: Rows, scores: npt.NDArray[np.floating], k: int) -> Found:
    """Return the best `k` of `rows`, both ascending, and their scores, shape (len(rows),).

    Ties for the last places go to earlier rows.
    """
    if rows.size > k:
        last = rows.size - k
        reaching = (scores >= np.partition(scores, last)[last]).nonzero()[0]
        best = reaching[(-scores[reaching]).argsort(kind="stable")[:k]]
        best.sort()
        rows, scores = rows[best], scores[best]
    return rows, np.asarray(scores, np.float64)


def distinct(rows: Rows) -> Rows:
    """Sort `rows` in place and return the distinct ones, ascending."""
    rows.sort()
    return rows[run_starts(rows)]


def run_starts(ordered: npt.NDArray[np.integer]) -> Rows:
    """Return where each run of equal values begins, ascending."""
    first = np.empty(ordered.size, np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first.nonzero()[0]
