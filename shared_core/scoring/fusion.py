"""Fusion of a dense and a sparse leg into one confidence score, and weighted RRF.

Scores of a pool are scaled to [0, 1] first (CAUS eq. 2), or by the least that they can be.
"""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_choice
from shared_core.native import kernels
from shared_core.types import Fusion

EPS = 1e-7
"""What keeps the spread of equal scores above zero (CAUS eq. 2)."""

Alpha = float | None

WEIGHTS: dict[Fusion, float] = {"theoretical_min": 0.85, "min_max": 0.3, "rrf": 0.5}
"""Weight of the dense leg by default. That of ``"min_max"`` is CAUS's own (section IV-A)."""

NO_COSINES = 0.5
"""The same of ``"theoretical_min"`` where the least that a dense score can be is not known."""

RRF_K = 60
"""Rank constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


def best_by_numpy(
    dense: npt.ArrayLike,
    sparse: npt.ArrayLike,
    weight: float,
    k: int,
    lows: tuple[float, float],
    fusion: Fusion,
) -> kernels.Ranked:
    """Return what `kernels.ranked` does, also by reciprocal ranks and where scores are missing.

    Raises
    ------
    ValueError
        If the shapes differ, or a score is infinite or too far from the others.
    """
    legs = _checked(dense, "dense scores"), _checked(sparse, "sparse scores")
    if legs[0].shape != legs[1].shape:
        raise ValueError(
            f"dense and sparse must score the same passages, got shapes "
            f"{legs[0].shape} and {legs[1].shape}"
        )
    orders = [(-leg).argsort(kind="stable") for leg in legs]
    ranks = [order.argsort(kind="stable") for order in orders]
    if fusion == "rrf":
        parts = [(RRF_K + 1) / (RRF_K + 1 + rank) for rank in ranks]
        parts[1][legs[1] == legs[1].min(initial=np.inf)] = 0.0
    else:
        parts = [_scaled(leg, low) for leg, low in zip(legs, lows, strict=True)]
    scores = weight * parts[0] + (1 - weight) * parts[1]
    best = orders[0][(-scores[orders[0]]).argsort(kind="stable")[:k]]
    lists = (each[best].tolist() for each in (scores, *legs, *parts, *ranks))
    return cast(kernels.Ranked, (best.tolist(), *lists))


def _checked(scores: npt.ArrayLike, name: str) -> Scores:
    """Return scores as a copy, shape (n,), a missing one (NaN) as the lowest of them."""
    values = np.array(scores, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {values.shape}")
    if values.size == 0 or math.isfinite(float(values.max()) - float(values.min())):
        return values
    for value in values[np.isinf(values)]:
        raise ValueError(f"{name} must be finite, got {value}")
    missing = np.isnan(values)
    values[missing] = 0.0 if missing.all() else values[~missing].min()
    lowest, highest = float(values.min()), float(values.max())
    if not math.isfinite(highest - lowest):
        raise ValueError(f"{name} lie too far apart: {lowest} to {highest}")
    return values


def _scaled(scores: Scores, low: float) -> Scores:
    lowest, highest = scores.min(initial=low), scores.max(initial=-math.inf)
    return np.asarray((scores - lowest) / (highest - lowest + EPS))


def weight_and_lows(
    alpha: Alpha, fusion: Fusion, *, cosines: bool
) -> tuple[float, tuple[float, float]]:
    """Return the weight of the dense leg, and the least that either leg's scores can be.

    Infinite: that is not known, or does not count. Raises ValueError if one is out of range.
    """
    check_choice(fusion, "fusion", Fusion)
    alpha = check_alpha(alpha)
    theoretical = fusion == "theoretical_min"
    if alpha is None:
        alpha = WEIGHTS[fusion] if cosines or not theoretical else NO_COSINES
    dense = -1.0 if theoretical and cosines else math.inf
    return alpha, (dense, 0.0 if theoretical else math.inf)


def check_alpha(alpha: Alpha) -> Alpha:
    """Return a number in [0, 1] as a float, or None; raise ValueError otherwise."""
    if alpha is None:
        return None
    number = isinstance(alpha, (int, float, np.integer, np.floating))
    if not number or isinstance(alpha, bool) or not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be a number in [0, 1], or None, got {alpha!r}")
    return float(alpha)
