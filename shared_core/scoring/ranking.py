"""From the scores of a pool to the best k, with everything that led to their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Scores
from shared_core.checking import check_count
from shared_core.scoring.fusion import Alpha, fuse
from shared_core.types import Fusion, Pool, Ranking


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
    scores = np.array(dense, np.float64), np.array(sparse, np.float64)
    return rank_pool(Pool((), *scores), k=k, alpha=alpha, fusion=fusion)


def rank_pool(pool: Pool, *, k: int, alpha: Alpha, fusion: Fusion) -> Ranking:
    """Rank a pool by the fused score of its two legs and keep the best `k`; see `rank`."""
    fused = fuse(pool.dense, pool.sparse, alpha=alpha, fusion=fusion)
    best = fused.order[: check_count(k, "k")]
    indices = best.tolist()
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
        fusion,
        [pool.passages[at] for at in indices] if pool.passages else (),
        pool.nearest,
        pool.query,
        _exact(pool.dense, pool.dense_exact)[best].tolist(),
        _exact(pool.sparse, pool.sparse_exact)[best].tolist(),
        pool.complete,
    )


def _exact(scores: Scores, exact: Bools | None) -> Bools:
    known = ~np.isnan(scores)
    return known if exact is None else known & exact
