"""Whether one arrangement beats another on the same questions, and by how much.

PositionalBias (section 5) compares answers that are right or wrong by the paired Wilcoxon
signed-rank test at 0.05. `shared_core.evaluation.paired_tests` says where another test replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from shared_core.evaluation.changes import order_differences, question_means
from shared_core.evaluation.intervals import paired_difference_interval
from shared_core.evaluation.paired_tests import Test, paired_p_value
from shared_core.evaluation.power import minimum_detectable_effect


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """One arrangement against a baseline on the same questions.

    Attributes
    ----------
    difference
        Mean outcome less that of the baseline, in [-1, 1]; above 0 is better.
    interval
        Interval (lower, upper) of this difference alone: not widened for multiple comparisons.
    p_value
        Two-sided.
    test
        The test that gave it.
    adjusted
        The p-value after Holm's correction over the arrangements that were compared at once.
    detectable
        Smallest difference that this many questions would show at the overall level divided by the
        number of arrangements (Bonferroni, which is no smaller than Holm's); see
        `minimum_detectable_effect`.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    test: Test
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

    Arrangements with one outcome per question, right or wrong, are compared by the Wilcoxon
    signed-rank test; graded outcomes, or several per question, by the permutation test. In these
    cases either tests the mean, like the difference and its interval; see `paired_p_value`.

    Parameters
    ----------
    outcomes
        How right each question was, by arrangement: shape (n,), in [0, 1], n >= 2, the questions in
        the same order everywhere. For an arrangement in several orders, n sequences of one value
        for each; the question's outcome is their mean.
    baseline
        Name of the one that the others are compared with.
    confidence, resamples, seed
        Of the intervals, as in `bootstrap_interval`. Tests are at ``1 - confidence``.
    power
        Of `minimum_detectable_effect`.

    Raises
    ------
    ValueError
        If there is no such baseline, the numbers of questions differ, or an outcome is out of
        range.
    """
    if baseline not in outcomes:
        raise ValueError(f"no baseline {baseline!r} among {', '.join(outcomes)}")
    others = [name for name in outcomes if name != baseline]
    tested = [paired_p_value(outcomes[name], outcomes[baseline]) for name in others]
    corrected = holm([p_value for _, p_value in tested])
    compared = {}
    for name, (test, p_value), adjusted in zip(others, tested, corrected, strict=True):
        interval = paired_difference_interval(
            outcomes[name],
            outcomes[baseline],
            confidence=confidence,
            resamples=resamples,
            seed=seed,
        )
        differences = order_differences(outcomes[name], outcomes[baseline])
        compared[name] = PairedComparison(
            difference=float(question_means(differences).mean()),
            interval=interval,
            p_value=p_value,
            test=test,
            adjusted=adjusted,
            detectable=minimum_detectable_effect(
                differences, power=power, alpha=(1 - confidence) / len(others)
            ),
        )
    return compared


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
