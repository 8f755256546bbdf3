"""Tests of whether one arrangement beats another on the same questions.

PositionalBias (section 5) takes the paired Wilcoxon signed-rank test for answers that are right or
wrong. It asks whether the ranks of differences are symmetric about 0, while a report states their
mean. The two questions are the same only where all changes have one size:

- Of graded outcomes, a fifth may gain much and the rest lose a little: better by the mean, worse
  by ranks.
- Differences of one order from the mean of several are skew even where no order is better: if
  nine answers of ten are right, the mean of ten orders is mostly a little below 1, and one order
  mostly is 1.

In these cases the outcomes of a question are permuted, and their mean is compared. Against several
orders two things may be permuted, and both must show a difference:

- *Any outcome of a question with any other*: exact where orders do not matter at all. But if the
  shuffles of a question agree with each other and not with the ranked order, their mean varies more
  than such exchanges let it, up to as many times as there are shuffles: a mean difference of 0 then
  passes for one in every fourth sample with three shuffles, and more often with more.
- *All outcomes of one side with all of the other*, which changes the sign of the question's
  difference: this allows for any such dependence, and takes differences to be symmetric about 0.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools
from shared_core.evaluation.changes import by_order, order_differences, question_means
from shared_core.evaluation.random_sums import Whole, sum_of_some, two_sided

Test: TypeAlias = Literal["Wilcoxon signed-rank", "within-question permutation"]
"""Name of a test: `wilcoxon_p_value`; `permutation_p_value`, see `paired_p_value`."""

_UNITS = 1200
"""Steps in the widest range of a question's outcomes: a multiple of 100 and of 3, so that
hundredths and thirds are exact."""


def paired_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Test, float]:
    """Return the test that fits the outcomes of two arrangements, and its p-value.

    This is the Wilcoxon test where both have one outcome per question and all changes have one
    size, as between right and wrong, so that the two tests agree; else the permutation test.
    Against several orders the p-value is the larger of `permutation_p_value` and
    `sign_flip_p_value`, which allows for any dependence between the orders of a question, but not
    for skew differences: if nine questions in ten gain 0.1, the tenth loses 0.9, and the shuffles
    of a question agree, about a third of samples of 10 questions, and an eighth of those of 50,
    have a p-value of at most 0.05 although the mean difference is 0.

    Raises
    ------
    ValueError
        As for either test.
    """
    differences = order_differences(a, b)
    sizes = np.unique(np.abs(differences[differences != 0]))
    if differences.shape[1] == 1 and sizes.size <= 1:
        return "Wilcoxon signed-rank", wilcoxon_p_value(a, b)
    p_value = permutation_p_value(a, b)
    if differences.shape[1] > 1:
        p_value = max(p_value, sign_flip_p_value(a, b))
    return "within-question permutation", p_value


def wilcoxon_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of the Wilcoxon signed-rank test of ``a - b``.

    If neither is better, a difference is as likely to be above 0 as to be below. Questions without
    a difference are left out (Wilcoxon's own treatment of zeros); if none is left the value is 1.
    With differences of one size, as for outcomes of 0 and 1, this is the sign test, alias
    McNemar's. With several sizes it tests ranks and not the mean, which may differ from 0 in the
    other direction; `permutation_p_value` tests the mean. Exact up to 250 differences, ties or not
    (their ranks are averaged); beyond, normal with the correction for ties; see `two_sided`.

    Parameters
    ----------
    a, b
        Outcomes of the same questions, shape (n,), n >= 1, finite.

    Raises
    ------
    ValueError
        If the shapes differ, there are no questions, or a value is not finite.

    Examples
    --------
    Six questions out of eight are better, none is worse: 2 / 2 ** 6.

    >>> wilcoxon_p_value([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1])
    0.03125
    """
    differences = order_differences(a, b)
    if differences.shape[1] > 1:
        raise ValueError(
            f"a and b must hold one outcome per question, got up to {by_order(a).shape[1]} and "
            f"{by_order(b).shape[1]}; use permutation_p_value for several orders"
        )
    changed = differences[differences != 0]
    _, size, ties = np.unique(np.abs(changed), return_inverse=True, return_counts=True)
    doubled = (2 * ties.cumsum() - ties + 1)[size]
    return _flipped(_smallest_whole(doubled), changed > 0)


def sign_flip_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of flipping the signs of the questions' mean differences.

    If neither is better, a question's mean difference is as likely to have either sign. Their sum
    is compared with its distribution over all signs, which no dependence between the orders of one
    question spoils. Questions whose mean difference is 0 do not count. At least 6 others are needed
    for 0.05, as for any test of two orders; see `fewest_questions`. The distribution is exact where
    that is fast, else normal; see `two_sided`.

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
    differences = order_differences(a, b)
    means = question_means(differences)
    widest = float(np.nanmax(np.abs(differences))) or 1.0
    units = _UNITS * differences.shape[1] / widest
    scores = np.rint(units * np.abs(means)).astype(np.int64)
    changed = scores > 0
    return _flipped(_smallest_whole(scores[changed]), means[changed] > 0)


def permutation_p_value(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the two-sided p-value of the permutation of outcomes within each question.

    If no order is better than another, any of a question's outcomes may be the one that `a` got: of
    S + 1 outcomes of which c are right, the only one of `a` is right with probability
    ``c / (S + 1)``, whatever the question. The sum of the outcomes of `a`, less its expectation, is
    therefore compared with its distribution over all such exchanges (Fisher's randomisation test,
    in strata: Mantel and Haenszel, J. Natl. Cancer Inst. 22, 1959, is its normal approximation for
    right and wrong). With one outcome on either side this flips the signs of differences; for right
    and wrong it is McNemar's exact test. Questions whose outcomes are all equal do not count. The
    distribution is exact where that is fast, else normal; see `two_sided`.

    The null hypothesis is that orders do not matter at all. With one outcome on either side that is
    as good as a test of the mean, even where differences are skew; but no test sees rare large ones
    that a sample lacks. Against several orders, it may also be rejected for orders that help on
    some questions as much as they harm on others; `paired_p_value` then asks `sign_flip_p_value`
    as well.

    Parameters
    ----------
    a, b
        Outcomes of the same questions, shape (n,), n >= 1, finite; or, of several orders, n
        sequences of one value for each. Graded outcomes are rounded to a 1200th of the
        widest range that a question has.

    Raises
    ------
    ValueError
        If the numbers of questions differ, there are none, or a value is not finite.

    Examples
    --------
    One order was right on three questions, and all three shuffles were wrong: 2 / 4 ** 3.

    >>> permutation_p_value([1, 1, 1], [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    0.03125
    """
    order_differences(a, b)  # for its checks
    first, second = by_order(a), by_order(b)
    # With these weights sums differ as the means of a and b do, however many orders a question has.
    weights = sum(1 / np.isfinite(side).sum(axis=1, keepdims=True) for side in (first, second))
    outcomes = np.hstack([first, second]) * weights
    outcomes -= np.nanmin(outcomes, axis=1, keepdims=True)
    widest = float(np.nanmax(outcomes)) or 1.0
    there = np.isfinite(outcomes)
    scores = np.zeros(outcomes.shape, np.int64)
    scores[there] = _smallest_whole(np.rint(_UNITS * outcomes[there] / widest).astype(np.int64))
    of_a = there & (np.arange(outcomes.shape[1]) < first.shape[1])
    draws = [
        sum_of_some(scores[row, there[row]], int(of_a[row].sum()))
        for row in np.flatnonzero(scores.any(axis=1))
    ]
    return two_sided(draws, int(scores[of_a].sum()))


def _flipped(scores: Whole, above: Bools) -> float:
    """Return the two-sided p-value of the sum of the scores `above` 0; each is by a coin toss."""
    both = np.array([0.5, 0.5])
    draws = [(np.array([0, score]), both) for score in np.sort(scores)]
    return two_sided(draws, int(scores[above].sum()))


def _smallest_whole(scores: Whole) -> Whole:
    """Divide scores by their greatest common divisor, which leaves few distinct sums."""
    return scores // max(1, int(np.gcd.reduce(scores)))
