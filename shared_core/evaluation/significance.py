"""Whether one arrangement beats another on the same questions.

PositionalBias (section 5) compares arrangements by the paired Wilcoxon signed-rank test at 0.05.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core._extras import require
from shared_core.arrays import Scores
from shared_core.evaluation.intervals import paired_difference_interval
from shared_core.evaluation.power import minimum_detectable_effect

_DECIMALS = 12
"""To which differences are rounded: below, 0.3 - 0.1 and 0.2 would be no tie."""


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """One arrangement against a baseline on the same questions.

    Attributes
    ----------
    difference
        Mean outcome less that of the baseline, in [-1, 1]; above 0 it is better.
    interval
        Interval (lower, upper) of the difference, by itself: not widened for many comparisons.
    p_value
        Of the paired Wilcoxon test, two-sided.
    adjusted
        The same after Holm's correction over the arrangements that were compared at once.
    detectable
        Smallest difference that so many questions would show; see `minimum_detectable_effect`.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    adjusted: float
    detectable: float


def compare_paired(
    outcomes: Mapping[str, npt.ArrayLike],
    baseline: str,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, PairedComparison]:
    """Compare every arrangement with one of them, by name.

    Parameters
    ----------
    outcomes
        How right each question was, by arrangement: shape (n,), in [0, 1], n >= 2, the questions
        in the same order everywhere.
    baseline
        Name of the one that the others are compared with.
    confidence, resamples, seed
        Of the intervals, as in `bootstrap_interval`. A difference is detectable at
        ``1 - confidence``.
    power
        Of `minimum_detectable_effect`.

    Raises
    ------
    ValueError
        If there is no such baseline, the shapes differ, or an outcome is out of range.
    MissingExtraError
        If scipy is not installed.
    """
    if baseline not in outcomes:
        raise ValueError(f"no baseline {baseline!r} among {', '.join(outcomes)}")
    others = [name for name in outcomes if name != baseline]
    p_values = [wilcoxon_p_value(outcomes[name], outcomes[baseline]) for name in others]
    compared = {}
    for name, p_value, adjusted in zip(others, p_values, holm(p_values), strict=True):
        interval = paired_difference_interval(
            outcomes[name],
            outcomes[baseline],
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
        differences = _differences(outcomes[name], outcomes[baseline])
        compared[name] = PairedComparison(
            difference=float(differences.mean()),
            interval=interval,
            p_value=p_value,
            adjusted=adjusted,
            detectable=minimum_detectable_effect(differences, power=power, alpha=1 - confidence),
        )
    return compared


def wilcoxon_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test of ``a - b``.

    Questions without a difference are left out (Wilcoxon's own way with zeros); if none is left
    the value is 1. Differences of one size throughout, as of outcomes of 0 and 1, make the test
    the sign test, alias McNemar's, whose exact value is returned. Otherwise it is scipy's: exact
    up to 50 differences, or 13 where some are tied, and normal with the correction for ties
    beyond.

    Parameters
    ----------
    a, b
        Outcomes of the same questions, shape (n,), n >= 1, finite.

    Raises
    ------
    ValueError
        If the shapes differ, there are no questions, or a value is not finite.
    MissingExtraError
        If scipy is not installed.

    Examples
    --------
    Six questions out of eight are better, none is worse: 2 / 2 ** 6.

    >>> wilcoxon_p_value([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1])
    0.03125
    """
    differences = _differences(a, b)
    changed = differences[differences != 0]
    if not changed.size:
        return 1.0
    stats: Any = require("scipy.stats", extra="eval")
    if (np.abs(changed) == abs(changed[0])).all():
        better = int((changed > 0).sum())
        return float(stats.binomtest(better, changed.size).pvalue)
    return float(stats.wilcoxon(changed).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, Scand. J. Stat. 6, 1979), in their order.

    Rejecting where the adjusted value is at most 0.05 keeps the chance of any wrong rejection
    below 0.05, whatever the dependence between the tests.

    Raises
    ------
    ValueError
        If a value lies outside [0, 1].

    Examples
    --------
    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    for value in p_values:
        if not 0 <= value <= 1:
            raise ValueError(f"p-values lie in [0, 1], got {value}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for before, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - before) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def _differences(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ValueError(
            f"a and b must hold one value for each of the same questions, got shapes "
            f"{first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("outcomes must be finite; leave out questions that have none")
    return np.round(first - second, _DECIMALS)
