"""From the scores of a pool to the best k, with everything that led to their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Scores
from shared_core.checking import check_count
from shared_core.native import kernels
from shared_core.scoring.fusion import Alpha, best_by_numpy, weight_and_lows
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
    k
        Number of passages to keep, >= 1; more than there are keeps all.
    alpha
        Weight of the dense leg in [0, 1]. None: 0.85, or 0.5 if its scores are not known to be
        cosines; 0.3 for ``"min_max"`` and 0.5 for ``"rrf"``.
    fusion
        ``"theoretical_min"``, ``"min_max"`` or ``"rrf"``.
    cosines
        Whether the dense scores are cosines.

    Returns
    -------
    Ranking
        Best first; ties by dense rank, then by position. Its `indices` are positions in the arrays
        that were given.

    Raises
    ------
    ValueError
        If the shapes differ, a score is infinite, or `k`, `alpha` or `fusion` is out of range.

    Examples
    --------
    >>> rank([0.9, 0.8, 0.1], [1.0, 9.0, 3.0]).indices
    [1, 0, 2]
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
        found = best_by_numpy(dense, sparse, weight, k, lows, fusion)
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


def _known(scores: Scores, exact: Bools | None) -> Bools | None:
    known = ~np.isnan(scores)
    return known if exact is None else known & exact
