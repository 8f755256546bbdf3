"""Whether one arrangement beats another on the same questions, and by how much.

PositionalBias (section 5) compares answers that are right or wrong by the paired Wilcoxon
signed-rank test at 0.05. It asks whether the ranks of differences are symmetric about 0, while a
report states their mean. The two questions are the same only where all changes have one size:

- Of graded outcomes, a fifth may gain much and the rest lose a little: better by the mean, worse
  by ranks.
- Differences of one order from the mean of several are skew even where no order is better: if
  nine answers of ten are right, the mean of ten orders is mostly a little below 1, and one order
  mostly is 1.

Everywhere the outcomes of a question are therefore permuted, and their mean is compared; where all
changes have one size that is Wilcoxon's test, and is called so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.evaluation.intervals import paired_difference_interval
from shared_core.evaluation.paired_differences import paired_differences
from shared_core.evaluation.permutation import permutation_p_value, sign_flip_p_value
from shared_core.evaluation.power import minimum_detectable_effect

Test: TypeAlias = Literal["Wilcoxon signed-rank", "within-question permutation"]
"""Name of a test; see `paired_p_value`."""

Key = TypeVar("Key", bound=Hashable)


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

    def shown(self, level: float) -> Literal["better", "worse", "open"]:
        """Return what is shown at a level: by the corrected p-value, and by the interval."""
        lower, upper = self.interval
        if self.adjusted > level or lower <= 0 <= upper:
            return "open"
        return "better" if lower > 0 else "worse"


def compare_paired(
    pairs: Mapping[Key, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    tests: int | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[Key, PairedComparison]:
    """Compare the outcomes of arrangements with those of their baselines, all at once.

    Parameters
    ----------
    pairs
        Any key -> how right each question was by an arrangement, and by its baseline: shape (n,),
        in [0, 1], n >= 2, the questions in the same order. For an arrangement in several orders,
        shape (n, orders); the question's outcome is their mean.
    tests
        Number of tests to correct for, if some of them are not in `pairs`.
    confidence, resamples, seed
        Of the intervals, as in `bootstrap_interval`. Tests are at ``1 - confidence``.
    power
        Of `minimum_detectable_effect`.

    Raises
    ------
    ValueError
        If the numbers of questions of a pair differ, or an outcome is out of range.
    """
    tests = len(pairs) if tests is None else tests
    tested = {key: paired_p_value(*pair) for key, pair in pairs.items()}
    p_values = [p_value for _, p_value in tested.values()]
    adjusted = dict(zip(pairs, holm([*p_values, *[1.0] * (tests - len(pairs))]), strict=False))
    compared = {}
    for key, (a, b) in pairs.items():
        differences = paired_differences(a, b)
        test, p_value = tested[key]
        compared[key] = PairedComparison(
            difference=float(differences.mean(axis=1).mean()),
            interval=paired_difference_interval(
                a, b, confidence=confidence, resamples=resamples, seed=seed
            ),
            p_value=p_value,
            test=test,
            adjusted=adjusted[key],
            detectable=minimum_detectable_effect(
                differences, power=power, alpha=(1 - confidence) / tests
            ),
        )
    return compared


def paired_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Test, float]:
    """Return the test that fits the outcomes of two arrangements, and its p-value.

    Where both have one outcome per question and all changes have one size, as between right and
    wrong, the permutation test is the Wilcoxon test (and the sign test, alias McNemar's). Against
    several orders the p-value is the larger of `permutation_p_value` and `sign_flip_p_value`, which
    allows for any dependence between the orders of a question, but not for skew differences: if
    nine questions in ten gain 0.1, the tenth loses 0.9, and the shuffles of a question agree, about
    a third of samples of 10 questions, and an eighth of those of 50, have a p-value of at most 0.05
    although the mean difference is 0.

    Raises
    ------
    ValueError
        As for either test.

    Examples
    --------
    Six questions out of eight are better, none is worse: 2 / 2 ** 6.

    >>> paired_p_value([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1])
    ('Wilcoxon signed-rank', 0.03125)
    """
    differences = paired_differences(a, b)
    p_value = permutation_p_value(a, b)
    if differences.shape[1] > 1:
        return "within-question permutation", max(p_value, sign_flip_p_value(a, b))
    has_one_size = np.unique(np.abs(differences[differences != 0])).size <= 1
    return "Wilcoxon signed-rank" if has_one_size else "within-question permutation", p_value


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, Scand. J. Stat. 6, 1979), in their order.

    Rejecting where the adjusted value is at most 0.05 keeps the chance of any wrong rejection
    below 0.05, whatever the dependence between the tests. SciPy has none.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.02])
    [0.03, 0.04, 0.04]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for before, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, (len(p_values) - before) * p_values[at]))
        adjusted[at] = largest
    return adjusted
