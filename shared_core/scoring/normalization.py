"""Scores that a leg gives to a pool: checked, and scaled to [0, 1] (CAUS eq. 2)."""

from __future__ import annotations

import math

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


def check_legs(dense: npt.ArrayLike, sparse: npt.ArrayLike) -> tuple[Scores, Scores]:
    """Return both legs' scores by `check_leg`, with gaps; ValueError if their shapes differ."""
    legs = (
        check_leg(dense, "dense scores", gaps=True),
        check_leg(sparse, "sparse scores", gaps=True),
    )
    if legs[0].shape != legs[1].shape:
        raise ValueError(
            f"dense and sparse must score the same passages, got shapes "
            f"{legs[0].shape} and {legs[1].shape}"
        )
    return legs


def check_leg(scores: npt.ArrayLike, name: str, *, gaps: bool = False) -> Scores:
    """Return scores as a copy, shape (n,), finite and not too far apart to be subtracted.

    Parameters
    ----------
    scores
        What was given.
    name
        Their name, for the error.
    gaps
        Whether NaN may mark a score that the leg cannot give; it becomes the leg's lowest.

    Raises
    ------
    ValueError
        If the shape differs, or a score is not finite or too far from the others.
    """
    values = np.array(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}")
    if values.size == 0 or math.isfinite(values.max() - values.min()):
        return values
    missing = np.isnan(values)
    refused = np.isinf(values) if gaps else ~np.isfinite(values)
    if refused.any():
        raise ValueError(f"{name} must be finite, got {values[refused][0]}")
    if missing.any():
        values[missing] = 0.0 if missing.all() else values[~missing].min()
    lowest, highest = float(values.min()), float(values.max())
    if not math.isfinite(highest - lowest):
        raise ValueError(f"{name} lie too far apart: {lowest} to {highest}")
    return values
