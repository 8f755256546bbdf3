"""From the scores of a pool to the best k, with everything that led to their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Rows, Scores
from shared_core.checking import check_choice, check_count
from shared_core.native import kernels
from shared_core.scoring.adaptive import ADAPTIVE
from shared_core.scoring.fusion import RRF_K, Alpha, Fused, check_alpha, fuse_pool
from shared_core.scoring.legs import check_legs
from shared_core.scoring.normalization import EPS
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
    legs = check_legs(dense, sparse, gaps=True)
    check_choice(fusion, "fusion", Fusion)
    return rank_pool(*legs, k=check_count(k, "k"), alpha=check_alpha(alpha), fusion=fusion)


def rank_pool(
    dense: Scores,
    sparse: Scores,
    *,
    k: int,
    alpha: Alpha,
    fusion: Fusion,
    rows: Rows | None = None,
    passages: Sequence[Passage] = (),
    nearest: float | None = None,
    query: str | None = None,
) -> Ranking:
    """Rank a pool of two legs whose scores are known to be finite and aligned; see `rank`.

    Parameters
    ----------
    dense, sparse, k, alpha, fusion
        As in `rank`.
    rows
        Index row of each pool member, shape (n,), where the pool comes from an index.
    passages
        The index's passages by row.
    nearest, query
        As in `Ranking`.
    """
    rows = np.arange(dense.size) if rows is None else rows
    if kernels.built and rows.size:
        columns = kernels.rank(dense, sparse, rows, fusing_options(k, alpha, fusion))
    else:
        columns = _columns(fuse_pool(dense, sparse, alpha=alpha, fusion=fusion), rows, k)
    return ranking_of(columns, fusion, passages, nearest, query)


def fusing_options(k: int, alpha: Alpha, fusion: Fusion) -> kernels.Fusing:
    """Return the options of a fusion as the kernels take them."""
    return k, ADAPTIVE if alpha == "auto" else alpha, EPS, RRF_K if fusion == "rrf" else 0


def ranking_of(
    columns: kernels.Columns,
    fusion: Fusion,
    passages: Sequence[Passage],
    nearest: float | None,
    query: str | None,
) -> Ranking:
    """Return a ranking made of its columns; other arguments as in `rank_pool`."""
    found = [passages[row] for row in columns[0]] if passages else ()
    return Ranking(*columns, fusion, found, nearest, query)


def _columns(fused: Fused, rows: Rows, k: int) -> kernels.Columns:
    best = fused.order[:k]
    return (
        rows[best].tolist(),
        fused.scores[best].tolist(),
        fused.dense[best].tolist(),
        fused.sparse[best].tolist(),
        fused.dense_norm[best].tolist(),
        fused.sparse_norm[best].tolist(),
        fused.dense_rank[best].tolist(),
        fused.sparse_rank[best].tolist(),
        fused.alpha,
    )
