"""Fusion of a dense and a sparse leg into one confidence score (CAUS eq. 2), and weighted RRF."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Rows, Scores
from shared_core.checking import check_choice
from shared_core.scoring.adaptive import adaptive_weight
from shared_core.scoring.normalization import check_legs, scale
from shared_core.types import Fusion

Alpha = float | Literal["auto"]

RRF_K = 60
"""Rank constant of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""


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
    alpha: Alpha = 0.3,
    fusion: Fusion = "min_max",
) -> Fused:
    """Fuse the scores that two legs give to the same passages.

    ``"min_max"`` is CAUS eq. 2: ``alpha * min_max(dense) + (1 - alpha) * min_max(sparse)``.
    ``"rrf"`` is weighted reciprocal rank fusion: each leg contributes ``1 / (60 + rank)`` with
    the rank counted from 1, scaled so that the first rank of both legs gives 1. The sparse leg
    ranks only passages it scores above its minimum.

    Parameters
    ----------
    dense, sparse
        Scores in the same passage order, shape (n,), higher is better. NaN marks a score the
        leg cannot give; it counts as the leg's lowest.
    alpha
        Weight of the dense leg in [0, 1], or ``"auto"`` to weigh the legs by query (`auto_alpha`).
    fusion
        ``"min_max"`` or ``"rrf"``.

    Raises
    ------
    ValueError
        If the shapes differ, a score is infinite, or `alpha` or `fusion` is out of range.

    Examples
    --------
    >>> fuse([0.9, 0.8, 0.1], [1.0, 9.0, 3.0]).order.tolist()
    [1, 0, 2]
    """
    check_choice(fusion, "fusion", Fusion)
    alpha = check_alpha(alpha)
    dense, sparse = check_legs(dense, sparse, gaps=True)
    weight = adaptive_weight(dense, sparse) if alpha == "auto" else alpha
    dense_order = (-dense).argsort(kind="stable")
    sparse_order = (-sparse).argsort(kind="stable")
    dense_rank, sparse_rank = _inverse(dense_order), _inverse(sparse_order)
    if fusion == "min_max":
        dense_norm, sparse_norm = _scaled(dense, dense_order), _scaled(sparse, sparse_order)
    else:
        dense_norm = (RRF_K + 1) / (RRF_K + 1 + dense_rank)
        ranked = sparse > sparse.min(initial=np.inf)
        sparse_norm = np.where(ranked, (RRF_K + 1) / (RRF_K + 1 + sparse_rank), 0.0)
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


def check_alpha(alpha: Alpha) -> Alpha:
    """Return ``"auto"``, or a number in [0, 1] as a float; raise ValueError otherwise."""
    if isinstance(alpha, str) and alpha == "auto":
        return alpha
    number = isinstance(alpha, (int, float, np.integer, np.floating))
    if not number or isinstance(alpha, bool) or not 0 <= alpha <= 1:
        raise ValueError(f"alpha must be a number in [0, 1] or 'auto', got {alpha!r}")
    return float(alpha)


def _scaled(scores: Scores, order: Rows) -> Scores:
    return scale(scores, scores[order[-1]], scores[order[0]]) if order.size else scores


def _inverse(order: Rows) -> Rows:
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank
