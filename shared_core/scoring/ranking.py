"""From the scores of a pool to the best k, with everything that led to their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Scores
from shared_core.checking import check_count
from shared_core.native import kernels
from shared_core.scoring.fusion import Alpha, Fused, fuse, weight_and_lows
from shared_core.types import Fusion, Pool, Ranking

MOST = 4096
"""Passages of a pool up to which counting who is better is faster than sorting."""


def rank(
    dense: npt.ArrayLike,
    sparse: npt.ArrayLike,
    *,
    k: int = 10,
    alpha: Alpha = None,
    fusion: Fusion = "theoretical_min",
    cosines: bool = False,
) -> Ranking:
    """Rank candidates by the fused score of two legs and keep the best `k`.

    Parameters
    ----------
    dense, sparse, alpha, fusion, cosines
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
    return _ranking(Pool((), *scores), k, alpha, fusion, cosines)


def rank_pool(pool: Pool, *, k: int, alpha: Alpha, fusion: Fusion) -> Ranking:
    """Rank a pool by the fused score of its two legs and keep the best `k`; see `rank`."""
    return _ranking(pool, k, alpha, fusion, pool.nearest is not None)


def _ranking(pool: Pool, k: int, alpha: Alpha, fusion: Fusion, cosines: bool) -> Ranking:
    k, (weight, lows) = check_count(k, "k"), weight_and_lows(alpha, fusion, cosines=cosines)
    dense, sparse, exact = pool.dense, pool.sparse, (pool.dense_exact, pool.sparse_exact)
    found = None
    if kernels.built and fusion != "rrf" and dense.shape == sparse.shape and dense.size <= MOST:
        found = kernels.ranked(dense, sparse, weight, k, lows)
    if found is None:  # a score is missing, say
        found = _ranked(fuse(dense, sparse, alpha=alpha, fusion=fusion, cosines=cosines), k)
        exact = _known(dense, exact[0]), _known(sparse, exact[1])
    indices, passages = found[0], pool.passages
    dense_exact, sparse_exact = (
        [True] * len(indices) if each is None else each[indices].tolist() for each in exact
    )
    return Ranking(
        *found,
        alpha=weight,
        fusion=fusion,
        passages=[passages[at] for at in indices] if passages else (),
        nearest=pool.nearest,
        query=pool.query,
        dense_exact=dense_exact,
        sparse_exact=sparse_exact,
        complete=pool.complete,
    )


def _ranked(fused: Fused, k: int) -> kernels.Lists:
    """Return what `kernels.ranked` does."""
    best = fused.order[:k]
    return (
        best.tolist(),
        fused.scores[best].tolist(),
        fused.dense[best].tolist(),
        fused.sparse[best].tolist(),
        fused.dense_norm[best].tolist(),
        fused.sparse_norm[best].tolist(),
        fused.dense_rank[best].tolist(),
        fused.sparse_rank[best].tolist(),
    )


def _known(scores: Scores, exact: Bools | None) -> Bools | None:
    known = ~np.isnan(scores)
    return known if exact is None else known & exact
