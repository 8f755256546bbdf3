"""From the scores of a pool to the best k, with all that led to their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Rows
from shared_core.scoring.fusion import Alpha, Fused, fuse
from shared_core.types import Fusion, Passage, Ranking


def rank(
    dense: npt.ArrayLike,
    sparse: npt.ArrayLike,
    *,
    k: int = 10,
    alpha: Alpha = 0.3,
    fusion: Fusion = "min_max",
) -> Ranking:
    """Rank candidates by the fused score of two legs and keep the best `k`.

    Parameters
    ----------
    dense, sparse, alpha, fusion
        As in `fuse`.
    k
        Number of passages to keep, >= 1; more than there are keeps all.

    Returns
    -------
    Ranking
        Its `indices` are positions in the arrays that were given.

    Raises
    ------
    ValueError
        If `k` is below 1, and wherever `fuse` does.
    """
    return top(fuse(dense, sparse, alpha=alpha, fusion=fusion), check_k(k))


def check_k(k: int, name: str = "k") -> int:
    """Return `k` if it is an integer >= 1; raise ValueError naming it otherwise."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {k!r}")
    return int(k)


def top(
    fused: Fused,
    k: int,
    rows: Rows | None = None,
    passages: Sequence[Passage] = (),
    nearest: float | None = None,
    query: str | None = None,
) -> Ranking:
    """Return the best `k` of a fused pool.

    Parameters
    ----------
    fused
        The pool.
    k
        At least 1.
    rows
        Index row of each pool member, shape (n,), where the pool comes from an index.
    passages
        The index's passages by row.
    nearest, query
        As in `Ranking`.
    """
    best = fused.order[:k]
    indices: list[int] = (best if rows is None else rows[best]).tolist()
    return Ranking(
        indices,
        fused.scores[best].tolist(),
        fused.dense[best].tolist(),
        fused.sparse[best].tolist(),
        fused.dense_norm[best].tolist(),
        fused.sparse_norm[best].tolist(),
        fused.dense_rank[best].tolist(),
        fused.sparse_rank[best].tolist(),
        fused.alpha,
        fused.fusion,
        [passages[row] for row in indices] if passages else (),
        nearest,
        query,
    )
