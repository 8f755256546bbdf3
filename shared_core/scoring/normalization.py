"""Min-max normalisation of one leg's scores (CAUS eq. 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores

EPS = 1e-7


def min_max(scores: npt.ArrayLike) -> Scores:
    """Scale scores to [0, 1]: ``(x - min) / (max - min + eps)`` with ``eps = 1e-7``.

    Parameters
    ----------
    scores
        Finite scores over the pool, shape (n,), higher is better.

    Returns
    -------
    ndarray
        Shape (n,), in [0, 1). All zero where the scores are all equal.
    """
    scores = np.asarray(scores, np.float64)
    if scores.size == 0:
        return scores
    return scale(scores, float(scores.min()), float(scores.max()))


def scale(scores: Scores, lowest: float, highest: float) -> Scores:
    """Do what `min_max` does, given the extremes."""
    return (scores - lowest) / (highest - lowest + EPS)
