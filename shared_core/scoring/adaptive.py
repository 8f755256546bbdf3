"""A query-adaptive weight of the dense leg: CAUS's own future work, without labels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.native.kernels import Adaptive
from shared_core.scoring.legs import check_legs

BEST = 20
"""How many of a leg's best scores its best one is compared with."""

CONSTANT = 1e-6
"""Share of their size by which scores that are equal may differ: float32 rounds cosines."""

PRIOR_ODDS = math.e
"""Odds dense to sparse where both best scores stand out equally: a weight of 0.731."""

ADAPTIVE: Adaptive = (BEST, CONSTANT, PRIOR_ODDS)
"""What the kernels need of these."""


def auto_alpha(dense: npt.ArrayLike, sparse: npt.ArrayLike) -> float:
    """Weigh the dense leg by how far its best score stands out, against the sparse leg's.

    A leg that has found the answer shows it: its best passage stands clear of the next ones. A
    leg that guesses has many passages near the top. On the scale of min-max normalisation::

        stand_out = (best - mean of the 20 best) / (best - worst)
        alpha = e * stand_out_dense / (e * stand_out_dense + stand_out_sparse)

    The factor e corrects for BM25's long upper tail, whose best score stands out further by
    nature than a best cosine does. Shifting or stretching a leg's scores changes nothing, nor
    does the order of the passages. Scores that differ by less than a millionth of their size, by
    which float32 rounds cosines, count as equal.

    Parameters
    ----------
    dense, sparse
        Finite scores over the same pool, shape (n,), higher is better.

    Returns
    -------
    float
        Weight of the dense leg in [0, 1]. A leg whose scores are all equal (no query word in the
        pool, say) says nothing and weighs 0; where neither says anything, 0.731.

    Raises
    ------
    ValueError
        If the shapes differ, or a score is not finite.
    """
    return adaptive_weight(*check_legs(dense, sparse))


def adaptive_weight(dense: Scores, sparse: Scores) -> float:
    """Do what `auto_alpha` does for legs that are known to be finite and aligned."""
    odds = PRIOR_ODDS * _stands_out(dense)
    total = odds + _stands_out(sparse)
    return odds / total if total > 0 else PRIOR_ODDS / (1 + PRIOR_ODDS)


def _stands_out(scores: Scores) -> float:
    """Return how far the best score stands out, in [0, 1]; 0 where all are equal."""
    if scores.size == 0:
        return 0.0
    best = float(scores.max())
    worst = float(scores.min())
    spread = best - worst
    if not spread > CONSTANT * max(abs(best), abs(worst)):
        return 0.0
    # Added up in descending order, as the kernel does: so their order does not change a bit.
    descending = -np.sort(-scores)[:BEST]
    mean = float(np.add.accumulate(descending)[-1]) / descending.size
    return (best - mean) / spread
