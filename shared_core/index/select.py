"""Few rows out of many: those with the best scores, and the distinct ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Found, Rows, Scores

STRIPES = 64
"""Most parts of which the maxima are taken."""

PLAIN = 2048
"""Rows below which taking maxima does not pay off."""


def reaching(scores: npt.NDArray[np.floating], k: int) -> Rows:
    """Return the rows whose score is at least the k-th best one, ascending.

    Every row that ties with the k-th best is among them. The k-th best of the maxima of
    equal parts never exceeds the k-th best of all, which leaves few rows to look at closely.

    Parameters
    ----------
    scores
        Shape (n,), higher is better.
    k
        At least 1.
    """
    n = scores.size
    if n <= k:
        return np.arange(n)
    stripes = min(STRIPES, n // (4 * k))
    if stripes < 2 or n < PLAIN:
        return _at_least(scores, _kth(scores, k))
    width = n // stripes
    maxima = scores[: width * stripes].reshape(stripes, width).max(axis=0)
    rows = _at_least(scores, _kth(maxima, k))
    close = scores[rows]
    return rows[_at_least(close, _kth(close, k))]


def best_of(rows: Rows, scores: npt.NDArray[np.floating], k: int) -> Found:
    """Return the best `k` of `rows`, both ascending, and their scores, shape (len(rows),).

    Ties for the last places go to earlier rows.
    """
    if rows.size > k:
        near = reaching(scores, k)
        best = near[(-scores[near]).argsort(kind="stable")[:k]]
        best.sort()
        rows, scores = rows[best], scores[best]
    return rows, np.asarray(scores, np.float64)


def kth_best(scores: Scores, k: int) -> float:
    """Return the k-th best score; minus infinity if there are fewer."""
    return float(_kth(scores, k)) if scores.size >= k else -np.inf


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


def _at_least(scores: npt.NDArray[Any], bound: float) -> Rows:
    return (scores >= bound).nonzero()[0]


def _kth(scores: npt.NDArray[Any], k: int) -> Any:
    at = scores.size - k
    return np.partition(scores, at)[at]
