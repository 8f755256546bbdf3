"""How small a difference a number of questions can show, and how many a difference needs.

Both follow from `_needed`, the matched-pairs formula (Connor, Biometrics 43, 1987); the formulas of
statsmodels ignore that an exact test moves in steps. With a and b, the normal quantiles of
``1 - alpha / 2`` and of the power, and q, the mean square of a difference, a mean difference of e
needs n questions:

    sqrt(n) * e = a * sqrt(q) + b * sqrt(q - e ** 2) + h / sqrt(n)

q is taken from the observed differences; if their mean is larger than e, it is set to e.

h corrects for the steps of an exact test. If all outcomes change by one size, its p-value moves in
jumps, and exceeds that of the normal approximation by half a jump (Yates). Part of this is
regained, because the test adapts to the number of questions that change: if most changes are for
the better, their number and their mean vary together.

There are two lower bounds, so that questions that have hardly ever changed do not make tiny
differences detectable. Changes of a typical size m (`typical_change`) make a mean difference of e
only if a share ``e / m`` of questions change. Then q is at least ``e * m``, and of n questions
``n * e / m`` change on average, of which no test reaches its level unless `fewest_questions` do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_count, check_fractions
from shared_core.evaluation.paired_differences import typical_change

_HALVINGS = 50
"""Halvings of [0, 1] until the smallest difference is known to about 1e-15."""


@dataclass(frozen=True)
class _Observed:
    """Observed differences: their number, mean, standard deviation, and typical size of a change.

    `half_step` is half the distance between the sums that an exact test can distinguish; 0 if
    changes differ in size, since their sums are then close together.
    """

    n: int
    mean: float
    spread: float
    change: float
    half_step: float


def minimum_detectable_effect(
    differences: npt.ArrayLike,
    *,
    n: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """Return the smallest mean difference that `n` questions show with the given power.

    The inverse of `questions_needed`.

    Parameters
    ----------
    differences
        Outcome less that of the baseline by question, shape (m,), in [-1, 1], m >= 2; or, for
        several orders, shape (m, differences per question), as `paired_differences` returns them.
    n
        Number of questions, >= 1; by default the number of differences.
    power
        Chance of finding a difference of that size, in (0, 1).
    alpha
        Level of the two-sided test, in (0, 1). Divide it by the number of arrangements for a
        bound that holds under Holm's correction.

    Returns
    -------
    float
        In outcome units; above 1, no difference could be shown.

    Raises
    ------
    ValueError
        If the differences or an option is out of range.
    """
    observed = _observe(differences)
    n = observed.n if n is None else check_count(n, "n")
    most = _needed(1.0, observed, power, alpha)
    if most > n:
        return most / n
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _needed(middle, observed, power, alpha) > n:
            low = middle
        else:
            high = middle
    return high


def questions_needed(
    differences: npt.ArrayLike,
    effect: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int:
    """Return how many questions show a mean difference of `effect` with the given power.

    The result is at least `fewest_questions`. For outcomes of 0 and 1, of one order each, the power
    is met to within 0.02, and exceeded if hardly any question changes for the worse. Against the
    mean of several orders it may be missed by 0.05, and by up to 0.2 if nearly every answer is
    right.

    Parameters
    ----------
    differences, power, alpha
        As in `minimum_detectable_effect`.
    effect
        Mean difference to be shown, in (0, 1].

    Raises
    ------
    ValueError
        If the differences, the effect or an option is out of range.
    """
    observed = _observe(differences)
    if not 0 < effect <= 1:
        raise ValueError(f"effect must be a difference in (0, 1], got {effect}")
    # Rounding must not add a question where the division has no remainder.
    return math.ceil(round(_needed(effect, observed, power, alpha), 9))


def fewest_questions(alpha: float = 0.05) -> int:
    """Return the number of changes below which no test of two orders reaches `alpha`: 6 at 0.05.

    Even if all n changes are for the better, p is ``2 / 2 ** n``, by Wilcoxon's test and by
    permutation, against one order and against the mean of several.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """
    check_fractions({"alpha": alpha})
    return 1 + math.ceil(-math.log2(alpha))


def _needed(effect: float, observed: _Observed, power: float, alpha: float) -> float:
    """Return the number of questions, which falls as the effect grows; not rounded."""
    check_fractions({"power": power, "alpha": alpha})
    level, chance = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    change, fewest = observed.change, fewest_questions(alpha)
    so_far = observed.spread**2 + min(observed.mean**2, effect**2)
    square = max(so_far, effect * change, effect**2)
    variance = square - effect**2
    regained = level * chance / 2 * (effect * change / square) * math.sqrt(variance / square)
    half_step = observed.half_step * max(0.0, 1 - regained)
    both = level * math.sqrt(square) + chance * math.sqrt(variance)
    root = (both + math.sqrt(both**2 + 4 * half_step * effect)) / (2 * effect)
    return max(fewest, root**2, _questions_to_change(min(1.0, effect / change), fewest, power))


def _questions_to_change(share: float, fewest: int, power: float) -> float:
    """Return among how many questions `fewest` change with chance `power`.

    Each changes with probability `share`. This is the normal approximation of the binomial
    quantile, solved as for Wilson's interval.
    """
    z, count = NormalDist().inv_cdf(power), fewest - 0.5
    half = z * math.sqrt(1 - share)
    return ((half + math.sqrt(half**2 + 4 * count)) / 2) ** 2 / share


def _observe(differences: npt.ArrayLike) -> _Observed:
    values = np.asarray(differences, np.float64)
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or len(rows) < 2 or not rows.size:
        raise ValueError(
            "differences must be one value or several for each of at least 2 questions, got "
            f"shape {values.shape}"
        )
    if (outside := np.abs(rows) > 1).any():
        raise ValueError(f"differences lie in [-1, 1], got {rows[outside][0]}")
    means, change = rows.mean(axis=1), typical_change(rows)
    spread = float(means.std(ddof=1))
    return _Observed(len(rows), float(means.mean()), spread, change, _half_step(rows, change))


def _half_step(rows: Scores, change: float) -> float:
    """Return half the step of the sums: 1 + 1 / s for one order less the mean of s others."""
    sizes = np.unique(np.abs(rows[rows != 0]).round(12))
    return change * (1 + 1 / rows.shape[1]) / 2 if sizes.size <= 1 else 0.0
