"""Significance: right p-values, few false alarms, and effects that are shown as often as said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("scipy")

from scipy import stats

from shared_core.errors import GenerationError
from shared_core.evaluation import compare_paired, complete_cases, paired_difference_interval
from shared_core.evaluation.paired_differences import paired_differences
from shared_core.evaluation.power import fewest_questions, questions_needed
from shared_core.evaluation.significance import (
    holm,
    paired_p_value,
    permutation_p_value,
    sign_flip_p_value,
)
from shared_core.generation.responses import Failed

Outcomes = npt.NDArray[np.float64]
RUNS = 200
TOLERATED = int(stats.binom.ppf(0.99, RUNS, 0.05))
"""False alarms in 200 runs that a level of 5% exceeds in less than one case of a hundred."""


def test_of_right_and_wrong_it_is_the_exact_sign_test() -> None:
    """Wilcoxon's too: nine of 29 questions change, eight for the better."""
    a = np.array([1.0] * 8 + [0.0] + [1.0] * 20)
    b = np.array([0.0] * 8 + [1.0] + [1.0] * 20)
    expected = stats.binomtest(8, 9).pvalue
    for size in (1.0, 0.3):
        for found in (paired_p_value(size * a, size * b), paired_p_value(size * b, size * a)):
            assert found == ("Wilcoxon signed-rank", pytest.approx(expected))
    assert stats.wilcoxon(a - b, method="exact").pvalue == pytest.approx(expected, abs=0.02)
    assert paired_p_value(a, a) == ("Wilcoxon signed-rank", 1.0)


def test_differences_that_rounding_parts_are_of_one_size() -> None:
    """0.3 - 0.1 and 0.4 - 0.2 are one difference, although floats see two."""
    assert 0.3 - 0.1 != 0.4 - 0.2
    found = paired_p_value([0.3] * 7 + [0.2], [0.1] * 7 + [0.4])
    assert found == ("Wilcoxon signed-rank", 2 * 9 / 2**8)


def enumerated(sums: list[tuple[float, ...]], observed: float) -> float:
    """Twice the smaller tail, over every way to pick one number for each question."""
    all_of_them = np.array([sum(picked) for picked in itertools.product(*sums)])
    tails = ((all_of_them <= observed + 1e-9).mean(), (all_of_them >= observed - 1e-9).mean())
    return min(1.0, 2 * float(min(tails)))


@pytest.mark.parametrize("grades", [(0.0, 1.0), (0.0, 0.25, 0.5, 1.0)])
@pytest.mark.parametrize("orders", [1, 3, 7])
def test_every_exchange_within_questions_and_every_flip_of_their_signs_is_counted(
    grades: tuple[float, ...], orders: int
) -> None:
    """Any outcome of a question may be that of the one order, or all of one side of the other."""
    rng = np.random.default_rng(9)
    for _ in range(5):
        one, shuffled = rng.choice(grades, 6), rng.choice(grades, (6, orders))
        exchanges = [
            tuple(x - np.delete([*them, own], at).mean() for at, x in enumerate([*them, own]))
            for own, them in zip(one, shuffled, strict=True)
        ]
        changes = [each[-1] for each in exchanges]
        exchanged = enumerated(exchanges, sum(changes))
        flipped = enumerated([(change, -change) for change in changes], sum(changes))
        for sides in ((one, shuffled), (shuffled, one)):
            assert permutation_p_value(*sides) == pytest.approx(exchanged)
            assert sign_flip_p_value(*sides) == pytest.approx(flipped)
            assert paired_p_value(*sides)[1] == pytest.approx(max(exchanged, flipped))


def test_thousands_of_graded_questions_take_the_normal_distribution() -> None:
    """Which is that of the conditional mean and variance; and of a few hundred it is close."""
    rng = np.random.default_rng(11)
    for n, tolerance in ((4000, 0.01), (100, 0.06)):
        outcomes = rng.beta(2, 1, (n, 4)).round(2)
        variance = outcomes.var(axis=1).sum()
        z = (outcomes[:, 0] - outcomes.mean(axis=1)).sum() / math.sqrt(variance)
        found = permutation_p_value(outcomes[:, 0], outcomes[:, 1:])
        assert found == pytest.approx(2 * stats.norm.sf(abs(z)), rel=tolerance)


def test_graded_outcomes_are_tested_for_what_is_said_of_them_their_mean() -> None:
    """Better in the mean, worse by ranks: a p-value of the ranks would speak against the gain."""
    gains = np.array([0.95] * 40 + [0.46] * 160)
    ranked = np.full(200, 0.5)
    assert stats.wilcoxon(gains - ranked, alternative="less").pvalue < 0.01
    test, p_value = paired_p_value(gains, ranked)
    assert test == "within-question permutation"
    assert p_value == permutation_p_value(gains, ranked)


def of_one_mind(rng: np.random.Generator, n: int, shuffles: int) -> tuple[Outcomes, Outcomes]:
    """Shuffles that all agree on a question, and one order that agrees with them by chance."""
    shuffled = np.repeat(rng.random((n, 1)) < 0.5, shuffles, axis=1)
    return (rng.random(n) < 0.5).astype(float), shuffled.astype(float)


@pytest.mark.parametrize("shuffles", [3, 10])
def test_shuffles_that_agree_with_each_other_alone_raise_few_alarms(shuffles: int) -> None:
    """The mean difference is 0; exchanges of single outcomes take its spread for too small."""
    rng = np.random.default_rng(21)
    samples = [of_one_mind(rng, 100, shuffles) for _ in range(RUNS)]
    assert sum(paired_p_value(*each)[1] <= 0.05 for each in samples) <= TOLERATED
    assert sum(permutation_p_value(*each) <= 0.05 for each in samples) > 2 * TOLERATED


def test_holm_by_hand() -> None:
    """Steps down by rank, never falls, never exceeds 1, and keeps the order of the input."""
    assert holm([0.04, 0.001, 0.03, 0.9]) == pytest.approx([0.09, 0.004, 0.09, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


def test_one_small_change_says_little() -> None:
    """Of 30 questions one has changed by a tenth: nearly as little as if none had."""
    none, one = np.zeros(30), np.array([0.1, *[0.0] * 29])
    assert questions_needed(one, 0.03) > 0.85 * questions_needed(none, 0.03)
    third = paired_differences(np.ones(30), [[1, 1, 0], *[[1, 1, 1]] * 29])
    assert questions_needed(third, 0.03) == pytest.approx(questions_needed(none, 0.03), rel=0.06)


def test_the_unit_of_a_grade_does_not_matter() -> None:
    """Grades of half the size show an effect of half the size by as many questions."""
    whole = np.tile([1.0, *[0.0] * 9, -0.1, *[0.3] * 9], 20)
    needed = questions_needed(whole, 0.1)
    assert questions_needed(whole / 2, 0.05) == pytest.approx(needed, rel=0.05)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 7])
@pytest.mark.parametrize(
    ("better", "worse"),
    [
        *((0.1, 0.05), (0.05, 0.02), (0.2, 0.17), (0.04, 0.01), (0.3, 0.1), (0.5, 0.2)),
        *((0.6, 0.3), (0.03, 0.0), (0.1, 0.0)),
    ],
)
def test_right_and_wrong_are_told_apart_by_the_questions_needed_as_often_as_said(
    better: float, worse: float, alpha: float
) -> None:
    """By the exact power of the sign test; where nothing changes for the worse it may be more."""
    so_far = np.repeat([1.0, -1.0, 0.0], [1000 * better, 1000 * worse, 1000 * (1 - better - worse)])
    power = exact_power(questions_needed(so_far, better - worse, alpha=alpha), better, worse, alpha)
    assert 0.785 <= power <= (0.825 if worse else 0.88)


def exact_power(n: int, better: float, worse: float, alpha: float) -> float:
    """Return the chance that the sign test shows it if so many of n change on average."""
    changed = np.arange(1, n + 1)
    chances = stats.binom.pmf(changed, n, better + worse)
    least = stats.binom.isf(alpha / 2, changed, 0.5)
    shown = stats.binom.sf(least, changed, better / (better + worse))
    return float(chances @ shown)


def test_a_test_needs_six_questions() -> None:
    """Five that all improve still give 2 / 2 ** 5 = 0.0625, against however many shuffles."""
    assert fewest_questions() == 6
    for shuffles in (1, 3, 10):
        for n in (5, 6):
            assert paired_p_value([1] * n, [[0] * shuffles] * n)[1] == 2 / 2**n
    assert fewest_questions(0.01) == 8
    assert questions_needed([1.0, 1.0, 1.0], 1.0) == 6


def test_a_question_that_any_arm_failed_on_is_dropped_from_all() -> None:
    """Answers that are empty or nothing are no failures; the numbers are those of all questions."""
    failed = Failed(GenerationError("no answer"))
    cases = [["a", "b"], ["a", failed], [failed, failed], ["", None], [failed, "b"]]
    assert complete_cases(cases) == {0: ("a", "b"), 3: ("", None)}
    assert [*complete_cases([["c"], ["b"], ["a"]])] == [0, 1, 2]


def test_comparing_many_gives_each_its_difference_interval_and_adjusted_value() -> None:
    """The planted gain is found and lies in its interval; the copy of the baseline is no gain."""
    rng = np.random.default_rng(6)
    baseline = (rng.random(200) < 0.5).astype(float)
    gains = np.where(rng.random(200) < 0.4, 1.0, baseline)
    pairs = {"gains": (gains, baseline), "same": (baseline, baseline)}
    compared = compare_paired(pairs)
    found = compared["gains"]
    assert found.difference == pytest.approx((gains - baseline).mean())
    assert found.interval == paired_difference_interval(gains, baseline)
    assert found.adjusted == pytest.approx(2 * found.p_value)
    assert (found.test, found.p_value) == paired_p_value(gains, baseline)
    assert compared["same"].p_value == compared["same"].adjusted == 1.0
    of_five = compare_paired(pairs, tests=5)["gains"]
    assert of_five.adjusted == pytest.approx(5 * found.p_value)


def test_outcomes_of_other_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="the same questions, got 1 and 2"):
        permutation_p_value([1], [[1, 0], [0, 0]])
