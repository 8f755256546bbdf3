"""The rows with the best scores, without sorting all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Rows

STRIPES = 64


def reaching(scores: npt.NDArray[Any], k: int, slack: float = 0.0) -> Rows:
    """Return the rows whose score is at least the k-th best one less `slack`, ascending.

    So every row that ties with the k-th best is among them. The k-th best of the maxima of
    equal parts never exceeds the k-th best of all, which leaves few rows to look at closely.

    Parameters
    ----------
    scores
        Shape (n,), higher is better.
    k
        At least 1.
    slack
        At least 0, in units of the scores.
    """
    n = scores.size
    if n <= k:
        return np.arange(n)
    width = n // STRIPES
    if width <= k:
        return _at_least(scores, _kth(scores, k) - slack)
    maxima = scores[: width * STRIPES].reshape(STRIPES, width).max(axis=0)
    rows = _at_least(scores, _kth(maxima, k) - slack)
    close = scores[rows]
    return rows[_at_least(close, _kth(close, k) - slack)]


def _at_least(scores: npt.NDArray[Any], bound: float) -> Rows:
    return (scores >= bound).nonzero()[0]


def _kth(scores: npt.NDArray[Any], k: int) -> Any:
    at = scores.size - k
    return np.partition(scores, at)[at]
