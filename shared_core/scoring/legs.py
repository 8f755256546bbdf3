"""Checks of the scores that a leg gives to a pool."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores


def check_legs(
    dense: npt.ArrayLike, sparse: npt.ArrayLike, *, gaps: bool = False
) -> tuple[Scores, Scores]:
    """Return both legs' scores by `check_leg`; raise ValueError if their shapes differ."""
    legs = (
        check_leg(dense, "dense scores", gaps=gaps),
        check_leg(sparse, "sparse scores", gaps=gaps),
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
    missing = np.isnan(values)
    refused = np.isinf(values) if gaps else ~np.isfinite(values)
    if refused.any():
        raise ValueError(f"{name} must be finite, got {values[refused][0]}")
    if missing.any():
        values[missing] = 0.0 if missing.all() else values[~missing].min()
    lowest, highest = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    if not math.isfinite(highest - lowest):
        raise ValueError(f"{name} lie too far apart: {lowest} to {highest}")
    return values
