"""How many questions it takes to show a difference.

This is the matched-pairs formula (Connor, Biometrics 43, 1987); the formulas of statsmodels ignore
that an exact test moves in steps. With a and b, the normal quantiles of ``1 - alpha / 2`` and of
the power, and q, the mean square of a difference, a mean difference of e needs n questions:

    sqrt(n) * e = a * sqrt(q) + b * sqrt(q - e ** 2) + h / sqrt(n)

q is taken from the observed differences; if their mean is larger than e, it is set to e.

h corrects for the steps of an exact test. If all outcomes change by one size, its p-value moves in
jumps, and exceeds that of the normal approximation by half a jump (Yates). Part of this is
regained, because the test adapts to the number of questions that change: if most changes are for
the better, their number and their mean vary together.

There are two lower bounds, so that questions that have hardly ever changed do not seem to show tiny
differences. Changes of a typical size m (`typical_change`) make a mean difference of e only if a
share ``e / m`` of questions change. Then q is at least ``e * m``, and of n questions ``n * e / m``
change on average, of which no test reaches its level unless `fewest_questions` do.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.evaluation.paired_differences import by_order, typical_change

POWER = 0.8
"""Chance with which the questions that are needed show a difference."""

EFFECT = 0.03
"""Difference for which reports say how many questions are needed."""


def questions_needed(
    differences: npt.ArrayLike, effect: float = EFFECT, *, alpha: float = 0.05
) -> int:
    """Return how many questions show a mean difference of `effect` with a chance of `POWER`.

    The result is at least `fewest_questions`. For outcomes of 0 and 1, of one order each, the power
    is met to within 0.02, and exceeded if hardly any question changes for the worse. Against the
    mean of several orders it may be missed by 0.05, and by up to 0.2 if nearly every answer is
    right.

    Parameters
    ----------
    differences
        Outcome less that of the baseline by question, shape (m,), in [-1, 1], m >= 2; or, for
        several orders, shape (m, differences per question), as `paired_differences` returns them.
    effect
        Mean difference to be shown, in (0, 1].
    alpha
        Level of the two-sided test, in (0, 1). Divide it by the number of arrangements for a
        number that holds under Holm's correction.
    """
    rows, normal = by_order(differences), NormalDist()
    level, chance = normal.inv_cdf(1 - alpha / 2), normal.inv_cdf(POWER)
    means, change, fewest = rows.mean(axis=1), typical_change(rows), fewest_questions(alpha)
    so_far = float(means.var(ddof=1)) + min(float(means.mean()) ** 2, effect**2)
    square = max(so_far, effect * change, effect**2)
    variance = square - effect**2
    regained = level * chance / 2 * (effect * change / square) * math.sqrt(variance / square)
    half_step = _half_step(rows, change) * max(0.0, 1 - regained)
    both = level * math.sqrt(square) + chance * math.sqrt(variance)
    root = (both + math.sqrt(both**2 + 4 * half_step * effect)) / (2 * effect)
    needed = max(fewest, root**2, _questions_to_change(min(1.0, effect / change), fewest))
    # Rounding must not add a question where the division has no remainder.
    return math.ceil(round(needed, 9))


def fewest_questions(alpha: float = 0.05) -> int:
    """Return the number of changes below which no test of two orders reaches `alpha`: 6 at 0.05.

    Even if all n changes are for the better, p is ``2 / 2 ** n``, by Wilcoxon's test and by
    permutation, against one order and against the mean of several.
    """
    return 1 + math.ceil(-math.log2(alpha))


def _questions_to_change(share: float, fewest: int) -> float:
    """Return among how many questions `fewest` change with a chance of `POWER`.

    Each changes with probability `share`. This is the normal approximation of the binomial
    quantile, solved as for Wilson's interval.
    """
    z, count = NormalDist().inv_cdf(POWER), fewest - 0.5
    half = z * math.sqrt(1 - share)
    return ((half + math.sqrt(half**2 + 4 * count)) / 2) ** 2 / share


def _half_step(rows: Scores, change: float) -> float:
    """Return half the distance between the sums that an exact test can tell apart.

    It is 1 + 1 / s for one order less the mean of s others; 0 if changes differ in size, since
    their sums are then close together.
    """
    sizes = np.unique(np.abs(rows[rows != 0]).round(12))
    return change * (1 + 1 / rows.shape[1]) / 2 if sizes.size <= 1 else 0.0
