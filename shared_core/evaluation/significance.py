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
changes have one size that is Wilcoxon's test, and is called so. The permutations are written out
here, since those of SciPy draw at random: 120 ms for what takes 2 exactly.

Against several orders two things may be permuted, and both must show a difference:

- *Any outcome of a question with any other*: exact where orders do not matter at all. But if the
  shuffles of a question agree with each other and not with the ranked order, their mean varies more
  than such exchanges let it, up to as many times as there are shuffles: a mean difference of 0 then
  passes for one in every fourth sample with three shuffles, and more often with more.
- *All outcomes of one side with all of the other*, which changes the sign of the question's
  difference: this allows for any such dependence, and takes differences to be symmetric about 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.evaluation.intervals import paired_difference_interval
from shared_core.evaluation.paired_differences import by_order, paired_differences

Whole: TypeAlias = npt.NDArray[np.int64]
Draw: TypeAlias = tuple[Whole, Scores]
"""The values that a question may add to the sum, ascending and >= 0, and their probabilities."""

_STEPS = 1200
"""Steps in the widest range of a question's outcomes: a multiple of 100 and of 3, so that
hundredths and thirds are exact."""

_EXACT = 1 << 25
"""Most additions for an exact distribution, some 50 ms; beyond, the normal one is close."""


Test: TypeAlias = Literal["Wilcoxon signed-rank", "within-question permutation"]
"""Name of a test; see `paired_p_value`."""

CONFIDENCE = 0.95
"""Coverage of the intervals; tests are at 1 less this."""

Key = TypeVar("Key", bound=Hashable)


def permutation_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of the permutation of outcomes within each question.

    If no order is better than another, any of a question's outcomes may be the one that `a` got: of
    S + 1 outcomes of which c are right, the only one of `a` is right with probability
    ``c / (S + 1)``, whatever the question. The sum of the outcomes of `a`, less its expectation, is
    therefore compared with its distribution over all such exchanges (Fisher's randomisation test,
    in strata: Mantel and Haenszel, J. Natl. Cancer Inst. 22, 1959, is its normal approximation for
    right and wrong). With one outcome on either side this flips the signs of differences; for right
    and wrong it is McNemar's exact test. Questions whose outcomes are all equal do not count. The
    distribution is exact where that is fast, else normal.

    The null hypothesis is that orders do not matter at all. With one outcome on either side that is
    as good as a test of the mean, even where differences are skew; but no test sees rare large ones
    that a sample lacks. Against several orders, it may also be rejected for orders that help on
    some questions as much as they harm on others; `paired_p_value` then asks `sign_flip_p_value`
    as well.

    Parameters
    ----------
    a, b
        Outcomes of the same questions, shape (n,), n >= 1, finite; or, of several orders, shape
        (n, orders). Graded outcomes are rounded to a 1200th of the
        widest range that a question has.

    Raises
    ------
    ValueError
        If the numbers of questions differ.

    Examples
    --------
    One order was right on three questions, and all three shuffles were wrong: 2 / 4 ** 3.

    >>> permutation_p_value([1, 1, 1], [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    0.03125
    """
    paired_differences(a, b)  # for its checks
    first, second = by_order(a), by_order(b)
    outcomes = np.hstack([first, second])
    widest = float(np.ptp(outcomes, axis=1).max()) or 1.0
    return _exchanged(outcomes, first.shape[1], step=widest / _STEPS)


def sign_flip_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of flipping the signs of the questions' mean differences.

    If neither is better, a question's mean difference is as likely to have either sign. Their sum
    is compared with its distribution over all signs, which no dependence between the orders of one
    question spoils. Questions whose mean difference is 0 do not count. At least 6 others are needed
    for 0.05, as for any test of two orders; see `fewest_questions`.

    Parameters
    ----------
    a, b
        As in `permutation_p_value`; mean differences are rounded to a 1200th of the largest
        difference between two outcomes of a question, divided by the number of such differences.

    Raises
    ------
    ValueError
        As `permutation_p_value`.

    Examples
    --------
    One order was right on three questions, and all three shuffles were wrong: 2 / 2 ** 3.

    >>> sign_flip_p_value([1, 1, 1], [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    0.25
    """
    differences = paired_differences(a, b)
    widest = float(np.abs(differences).max()) or 1.0
    means = differences.mean(axis=1)
    outcomes = np.column_stack([means, np.zeros_like(means)])
    return _exchanged(outcomes, 1, step=widest / _STEPS / differences.shape[1])


def _exchanged(outcomes: Scores, of_a: int, *, step: float) -> float:
    """Return the p-value of the sum of the first `of_a` columns, if those of a row are exchanged.

    Outcomes are rounded to multiples of `step`.
    """
    above = outcomes - outcomes.min(axis=1, keepdims=True)
    scores = np.rint(above / step).astype(np.int64)
    scores //= max(1, int(np.gcd.reduce(scores, axis=None)))  # leaves few distinct sums
    draws = [_sum_of_some(row, of_a) for row in scores[scores.any(axis=1)]]
    return _two_sided(draws, int(scores[:, :of_a].sum()))


def _sum_of_some(scores: Whole, size: int) -> Draw:
    """Return the distribution of the sum of `size` of the scores, drawn without replacement."""
    ways = np.zeros((size + 1, int(scores.sum()) + 1))
    ways[0, 0] = 1
    for score in scores:
        with_it = np.zeros_like(ways)
        with_it[1:, score:] = ways[:-1, : ways.shape[1] - score]
        ways += with_it
    values = np.flatnonzero(ways[size])
    return values, ways[size, values] / math.comb(len(scores), size)


def _two_sided(draws: Sequence[Draw], observed: int) -> float:
    """Return twice the probability of a sum as extreme as `observed`, on its side; at most 1.

    Exact where that is fast (`_EXACT`: thousands of questions that are right or wrong, a hundred
    graded ones), else by the normal approximation.
    """
    cells = 1 + sum(int(values[-1]) for values, _ in draws)
    if cells * sum(len(values) for values, _ in draws) > _EXACT:
        means = [float(values @ chances) for values, chances in draws]
        variance = sum(
            float((values - mean) ** 2 @ chances)
            for (values, chances), mean in zip(draws, means, strict=True)
        )
        return math.erfc(abs(observed - sum(means)) / math.sqrt(2 * variance))
    sums = exact_distribution(draws)
    return min(1.0, 2 * float(min(sums[: observed + 1].sum(), sums[observed:].sum())))


def exact_distribution(draws: Sequence[Draw]) -> Scores:
    """Return the probability of each sum, from 0 on, of independent draws."""
    sums = np.ones(1)
    for values, chances in draws:
        longer = np.zeros(len(sums) + int(values[-1]))
        for value, chance in zip(values, chances, strict=True):
            longer[value : value + len(sums)] += chance * sums
        sums = longer
    return sums


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
    """

    difference: float
    interval: tuple[float, float]
    p_value: float
    test: Test
    adjusted: float

    @property
    def shown(self) -> Literal["better", "worse", "open"]:
        """What is shown: by the corrected p-value, at most 0.05, and by the interval."""
        lower, upper = self.interval
        if self.adjusted > 1 - CONFIDENCE or lower <= 0 <= upper:
            return "open"
        return "better" if lower > 0 else "worse"


def compare_paired(
    pairs: Mapping[Key, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    tests: int | None = None,
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
    resamples, seed
        Of the intervals, as in `bootstrap_interval`.

    Raises
    ------
    ValueError
        If the numbers of questions of a pair differ, or there are fewer than two.
    """
    tests = len(pairs) if tests is None else tests
    tested = {key: paired_p_value(*pair) for key, pair in pairs.items()}
    p_values = [p_value for _, p_value in tested.values()]
    adjusted = dict(zip(pairs, holm([*p_values, *[1.0] * (tests - len(pairs))]), strict=False))
    compared = {}
    for key, (a, b) in pairs.items():
        test, p_value = tested[key]
        compared[key] = PairedComparison(
            difference=float(paired_differences(a, b).mean(axis=1).mean()),
            interval=paired_difference_interval(
                a, b, confidence=CONFIDENCE, resamples=resamples, seed=seed
            ),
            p_value=p_value,
            test=test,
            adjusted=adjusted[key],
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
