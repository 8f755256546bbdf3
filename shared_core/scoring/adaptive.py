"""A query-adaptive weight of the dense leg: CAUS's own future work, without labels."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.scoring.normalization import check_legs

BEST = 20
"""Number of a leg's best scores with whose mean its best one is compared."""

CONSTANT = 1e-6
"""Relative difference up to which scores count as equal: float32 rounds cosines."""

PRIOR_ODDS = math.e
"""Odds of dense to sparse if both legs are equally peaked: a weight of 0.731."""


def auto_alpha(dense: npt.ArrayLike, sparse: npt.ArrayLike) -> float:
    """Weigh the dense leg by how far its best score stands out, against the sparse leg's.

    If a leg has found the answer, its best passage stands clear of the next ones; if it guesses,
    many passages are near the top. On the scale of min-max normalisation::

        peakedness = (best - mean of the 20 best) / (best - worst)
        alpha = e * peakedness_dense / (e * peakedness_dense + peakedness_sparse)

    The factor e corrects for BM25's long upper tail, whose best score naturally stands out further
    than a best cosine. Neither shifting or scaling a leg's scores nor reordering the passages
    changes the weight. Scores that differ by less than a millionth of their size, as float32
    cosines may by rounding, count as equal.

    Parameters
    ----------
    dense, sparse
        Finite scores over the same pool, shape (n,), higher is better.

    Returns
    -------
    float
        Weight of the dense leg in [0, 1]. A leg whose scores are all equal (no query word in the
        pool, say) carries no information and weighs 0; if neither carries any, the weight is 0.731.

    Raises
    ------
    ValueError
        If the shapes differ, or a score is not finite.
    """
    return adaptive_weight(*check_legs(dense, sparse))


def adaptive_weight(dense: Scores, sparse: Scores) -> float:
    """Like `auto_alpha`, for legs that are known to be finite and aligned."""
    odds = PRIOR_ODDS * peakedness(dense)
    total = odds + peakedness(sparse)
    return odds / total if total > 0 else PRIOR_ODDS / (1 + PRIOR_ODDS)


def peakedness(scores: Scores) -> float:
    """Return how far the best score stands out, in [0, 1]; 0 where all are equal."""
    if scores.size == 0:
        return 0.0
    best, worst = float(scores.max()), float(scores.min())
    spread = best - worst
    if not spread > CONSTANT * max(abs(best), abs(worst)):
        return 0.0
    # Summed in descending order, so that the result does not depend on that of the passages.
    descending = -np.sort(-scores)[:BEST]
    mean = float(np.add.accumulate(descending)[-1]) / descending.size
    return (best - mean) / spread
