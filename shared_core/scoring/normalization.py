"""Min-max normalisation of one leg's scores (CAUS eq. 2)."""

from __future__ import annotations

import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.scoring.legs import check_leg

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
        Shape (n,), in [0, 1]; 1 only if the scores are so far apart that `eps` is lost in rounding.
        All zero where they are all equal.

    Raises
    ------
    ValueError
        If the scores have a different shape, or one is not finite.
    """
    values = check_leg(scores, "scores")
    return scale(values, values.min(), values.max()) if values.size else values


def scale(scores: Scores, lowest: float, highest: float) -> Scores:
    """Like `min_max`, given the extremes."""
    return (scores - lowest) / (highest - lowest + EPS)
