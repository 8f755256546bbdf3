"""Fusion of a dense and a sparse leg into one confidence score, and weighted RRF.

Scores of a pool are scaled to [0, 1] first (CAUS eq. 2), or by the least that they can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Rows, Scores
from shared_core.checking import check_choice
from shared_core.types import Fusion

EPS = 1e-7


Alpha = float | None

WEIGHTS: dict[Fusion, float] = {"theoretical_min": 0.85, "min_max": 0.3, "rrf": 0.5}
"""Weight of the dense leg by default. That of ``"min_max"`` is CAUS's own (section IV-A)."""

NO_COSINES = 0.5
"""The same of ``"theoretical_min"`` where the least that a dense score can be is not known."""

RRF_K = 60
"""Rank constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


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


@dataclass(frozen=True, slots=True)
class Fused:
    """Fused scores of a pool, and the parts they were made of. Every array has shape (n,).

    Attributes
    ----------
    scores
        Fused score, in [0, 1], higher is better.
    dense, sparse
        The legs' scores; a missing one is set to its leg's minimum.
    dense_norm, sparse_norm
        The legs' parts before weighting, in [0, 1].
    dense_rank, sparse_rank
        Rank by one leg alone, ties by position.
    order
        Positions best first; ties by dense rank, then by position.
    alpha
        Weight of the dense leg; the sparse leg weighs ``1 - alpha``.
    fusion
        How they were fused.
    """

    scores: Scores
    dense: Scores
    sparse: Scores
    dense_norm: Scores
    sparse_norm: Scores
    dense_rank: Rows
    sparse_rank: Rows
    order: Rows
    alpha: float
    fusion: Fusion


def fuse(
    dense: npt.ArrayLike,
    sparse: npt.ArrayLike,
    *,
    alpha: Alpha = None,
    fusion: Fusion = "theoretical_min",
    cosines: bool = False,
) -> Fused:
    """Fuse the scores that two legs give to the same passages.

    A leg's scores are scaled to [0, 1] by ``(score - low) / (high - low + 1e-7)``, and added as
    ``alpha * dense + (1 - alpha) * sparse``. High is the highest of them.

    - ``"theoretical_min"``: low is the least that a score can be, -1 for a cosine and 0 for BM25
      (Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023). It
      does not depend on the worst passage that happens to be in the pool, so that one weight serves
      many collections. Of dense scores that are no cosines it is the lowest of them.
    - ``"min_max"``: low is the lowest of them (CAUS eq. 2).
    - ``"rrf"`` is weighted reciprocal rank fusion: each leg contributes ``1 / (60 + rank)`` with
      the rank counted from 1, scaled so that the first rank of both legs gives 1. The sparse leg
      ranks only passages it scores above its minimum.

    Parameters
    ----------
    dense, sparse
        Scores in the same passage order, shape (n,), higher is better. NaN marks a score the
        leg cannot give; it counts as the leg's lowest.
    alpha
        Weight of the dense leg in [0, 1]. None: 0.85, or 0.5 if its scores are not known to be
        cosines; 0.3 for ``"min_max"`` and 0.5 for ``"rrf"``.
    fusion
        ``"theoretical_min"``, ``"min_max"`` or ``"rrf"``.
    cosines
        Whether the dense scores are cosines.

    Raises
    ------
    ValueError
        If the shapes differ, a score is infinite, or `alpha` or `fusion` is out of range.

    Examples
    --------
    >>> fuse([0.9, 0.8, 0.1], [1.0, 9.0, 3.0]).order.tolist()
    [1, 0, 2]
    """
    weight, lows = weight_and_lows(alpha, fusion, cosines=cosines)
    dense, sparse = check_legs(dense, sparse)
    dense_order = (-dense).argsort(kind="stable")
    sparse_order = (-sparse).argsort(kind="stable")
    dense_rank, sparse_rank = _inverse(dense_order), _inverse(sparse_order)
    if fusion == "rrf":
        dense_norm = (RRF_K + 1) / (RRF_K + 1 + dense_rank)
        ranked = sparse > sparse.min(initial=np.inf)
        sparse_norm = np.where(ranked, (RRF_K + 1) / (RRF_K + 1 + sparse_rank), 0.0)
    else:
        dense_norm = _scaled(dense, dense_order, lows[0])
        sparse_norm = _scaled(sparse, sparse_order, lows[1])
    scores = weight * dense_norm + (1 - weight) * sparse_norm
    return Fused(
        scores=scores,
        dense=dense,
        sparse=sparse,
        dense_norm=dense_norm,
        sparse_norm=sparse_norm,
        dense_rank=dense_rank,
        sparse_rank=sparse_rank,
        order=dense_order[(-scores[dense_order]).argsort(kind="stable")],
        alpha=weight,
        fusion=fusion,
    )


def weight_and_lows(
    alpha: Alpha, fusion: Fusion, *, cosines: bool
) -> tuple[float, tuple[float, float]]:
    """Return the weight of the dense leg, and the least that either leg's scores can be.

    Infinite: that is not known, or does not count. Raises ValueError as `fuse`.
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


def _scaled(scores: Scores, order: Rows, low: float) -> Scores:
    if not order.size:
        return scores
    return scale(scores, min(low, scores[order[-1]]), scores[order[0]])


def _inverse(order: Rows) -> Rows:
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank
