"""Turns outcomes into estimates and differences, and corrects all p-values of a result at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shared_core.comparison.result import BASELINES, SEQUENTIAL, SHUFFLE, Estimate
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.evaluation.paired_differences import paired_differences
from shared_core.evaluation.power import questions_needed
from shared_core.evaluation.significance import CONFIDENCE, PairedComparison, compare_paired

Outcomes = Mapping[str, Sequence[Sequence[float]]]
"""Strategy -> question -> outcome of each of its orders, the same questions in all."""

Against = dict[str, dict[str, PairedComparison]]
"""Strategy -> baseline -> difference."""


def estimate(outcomes: Sequence[float], seed: int) -> Estimate:
    """Return the mean outcome with its interval."""
    values, interval = np.asarray(outcomes, np.float64), None
    if len(values) > 1:
        interval = bootstrap_interval(values[:, None], lambda means: means[:, 0], seed=seed)
    return Estimate(mean=float(values.mean()), interval=interval, n=len(values))


def compared(settings: Sequence[Outcomes], seed: int, resamples: int = 10_000) -> list[Against]:
    """Compare every strategy with both baselines, in every setting.

    Settings of fewer than two questions have no differences, but are counted. Seed and resamples
    are those of the intervals.
    """
    pairs = {
        (number, name, baseline): (outcomes[name], outcomes[baseline])
        for number, outcomes in enumerate(settings)
        for baseline in BASELINES
        for name in outcomes
        if name not in (SEQUENTIAL, baseline) and len(outcomes[name]) > 1
    }
    tests = number_of_tests(settings)
    found: list[Against] = [{name: {} for name in outcomes} for outcomes in settings]
    differences = compare_paired(pairs, tests=tests, resamples=resamples, seed=seed)
    for (number, name, baseline), comparison in differences.items():
        found[number][name][baseline] = comparison
        if (name, baseline) == (SHUFFLE, SEQUENTIAL):
            # One test, and one set of resamples: else only one side might exclude 0.
            found[number][SEQUENTIAL][SHUFFLE] = _reversed(comparison)
    return found


def number_of_tests(settings: Sequence[Outcomes]) -> int:
    """Return the number of comparisons that every p-value is corrected for (Holm)."""
    return sum(2 * len(outcomes) - 3 for outcomes in settings)


def needed(outcomes: Outcomes, tests: int) -> int | None:
    """Return how many questions would show `EFFECT` of any strategy over the ranked order."""
    if len(outcomes[SEQUENTIAL]) < 2:
        return None
    return max(
        questions_needed(
            paired_differences(outcomes[name], outcomes[SEQUENTIAL]),
            alpha=(1 - CONFIDENCE) / tests,
        )
        for name in outcomes
        if name != SEQUENTIAL
    )


def _reversed(comparison: PairedComparison) -> PairedComparison:
    """Return the same comparison seen from the baseline."""
    lower, upper = comparison.interval
    # 0.0 - x, not -x, which would show 0.0 as -0.00
    return replace(
        comparison, difference=0.0 - comparison.difference, interval=(0.0 - upper, 0.0 - lower)
    )
