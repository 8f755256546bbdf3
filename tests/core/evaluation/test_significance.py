"""Significance: right p-values, few false alarms, and effects that are as detectable as said."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("scipy")

from scipy import stats

from shared_core.evaluation import (
    compare_paired,
    fewest_questions,
    holm,
    minimum_detectable_effect,
    questions_needed,
    wilcoxon_p_value,
)

Outcomes = npt.NDArray[np.float64]
RUNS = 200
TOLERATED = int(stats.binom.ppf(0.99, RUNS, 0.05))
"""False alarms in 200 runs that a level of 5% exceeds in less than one case of a hundred."""


def right_or_wrong(rng: np.random.Generator, *, strategies: int, n: int) -> Outcomes:
    """Outcomes of 0 and 1 of arrangements that differ by chance only, shape (strategies, n)."""
    difficulty = rng.beta(1, 1, n)
    return (rng.random((strategies, n)) < difficulty).astype(float)


def graded(rng: np.random.Generator, *, strategies: int, n: int) -> Outcomes:
    """The same for outcomes such as F1, which are often 0 or 1 and else in between."""
    values = rng.random((strategies, n)) * 1.6 - 0.3
    return np.round(np.clip(values, 0, 1), 2)


def test_of_right_and_wrong_it_is_the_exact_sign_test() -> None:
    """Nine questions change, eight for the better: 2 * (9 + 1) / 2 ** 9."""
    a = np.array([1.0] * 8 + [0.0] + [1.0] * 20)
    b = np.array([0.0] * 8 + [1.0] + [1.0] * 20)
    assert wilcoxon_p_value(a, b) == pytest.approx(20 / 512)
    assert wilcoxon_p_value(b, a) == wilcoxon_p_value(a, b)


def test_without_ties_it_is_scipys_exact_test() -> None:
    """Ten distinct differences, the two smallest negative: ranks below sum to 3."""
    differences = np.array([-0.01, -0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4])
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert wilcoxon_p_value(0.5 + differences, [0.5] * 10) == pytest.approx(expected)
    assert expected == pytest.approx(2 * 5 / 1024)


def test_differences_that_rounding_parts_are_ties() -> None:
    """0.3 - 0.1 and 0.4 - 0.2 are one difference, although floats see two."""
    assert 0.3 - 0.1 != 0.4 - 0.2
    assert wilcoxon_p_value([0.3] * 7 + [0.2], [0.1] * 7 + [0.4]) == 2 * 9 / 2**8


def test_questions_that_do_not_change_say_nothing() -> None:
    """Zeros are left out, so that a thousand of them do not change the value."""
    a, b = [0.9, 0.7, 0.2, 0.8], [0.1, 0.4, 0.3, 0.6]
    padding = [0.5] * 1000
    assert wilcoxon_p_value(a, b) == wilcoxon_p_value([*a, *padding], [*b, *padding])


def test_no_difference_at_all_is_p_of_one() -> None:
    """Where scipy gives NaN."""
    assert wilcoxon_p_value([0, 1, 0.5], [0, 1, 0.5]) == 1.0


def test_holm_by_hand() -> None:
    """Steps down by rank, never falls, never exceeds 1, and keeps the order of the input."""
    assert holm([0.04, 0.001, 0.03, 0.9]) == pytest.approx([0.09, 0.004, 0.09, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@pytest.mark.parametrize("noise", [right_or_wrong, graded])
@pytest.mark.parametrize("n", [20, 60])
def test_on_noise_there_are_few_false_alarms(noise: type, n: int) -> None:
    """One arrangement against one: at most 5%, give or take what 200 runs let one see."""
    rng = np.random.default_rng(1)
    alarms = sum(
        wilcoxon_p_value(*noise(rng, strategies=2, n=n)) <= 0.05  # type: ignore[call-arg]
        for _ in range(RUNS)
    )
    assert alarms <= TOLERATED


def test_holm_keeps_the_chance_of_any_false_alarm() -> None:
    """Eight arrangements against one, all alike; uncorrected, far more runs raise an alarm."""
    rng = np.random.default_rng(2)
    corrected = uncorrected = 0
    for _ in range(RUNS):
        baseline, *others = right_or_wrong(rng, strategies=9, n=60)
        p_values = [wilcoxon_p_value(other, baseline) for other in others]
        corrected += min(holm(p_values)) <= 0.05
        uncorrected += min(p_values) <= 0.05
    assert corrected <= TOLERATED < uncorrected


@pytest.mark.parametrize(("n", "changing"), [(100, 0.3), (300, 0.1), (60, 0.5)])
def test_right_and_wrong_at_the_detectable_effect_are_found_as_often_as_said(
    n: int, changing: float
) -> None:
    """Share of questions that change fixed; the power is 80%, as a simulation finds it."""
    rng = np.random.default_rng(3)
    observed = rng.choice([-1.0, 0.0, 1.0], 4000, p=[changing / 2, 1 - changing, changing / 2])
    effect = minimum_detectable_effect(observed, n=n)
    better = (changing + effect) / 2
    found = 0
    for _ in range(1000):
        differences = rng.choice([-1.0, 0.0, 1.0], n, p=[changing - better, 1 - changing, better])
        found += wilcoxon_p_value(differences, np.zeros(n)) <= 0.05
    assert 0.72 <= found / 1000 <= 0.86


def test_graded_differences_at_the_detectable_effect_are_found_as_often_as_said() -> None:
    """A shift of all differences by the effect, with 120 questions of normal spread."""
    rng = np.random.default_rng(4)
    effect = minimum_detectable_effect(rng.normal(0, 0.2, 4000).clip(-1, 1), n=120)
    found = sum(
        wilcoxon_p_value(rng.normal(effect, 0.2, 120), np.zeros(120)) <= 0.05 for _ in range(1000)
    )
    assert 0.74 <= found / 1000 <= 0.85


def test_questions_that_never_changed_do_not_make_everything_detectable() -> None:
    """A spread of 0 would promise that any gain shows; yet a gain takes questions that change."""
    n = 52
    effect = minimum_detectable_effect(np.zeros(n))
    rng = np.random.default_rng(5)
    found = sum(
        wilcoxon_p_value((rng.random(n) < effect).astype(float), np.zeros(n)) <= 0.05
        for _ in range(1000)
    )
    assert 0.6 <= found / 1000 <= 0.9


def test_the_questions_needed_are_those_that_make_the_effect_detectable() -> None:
    """Each is the inverse of the other, also where few questions change."""
    for changing in (0.4, 0.02):
        differences = np.array(
            [1.0, -1.0] * round(500 * changing) + [0.0] * round(1000 - 1000 * changing)
        )
        needed = questions_needed(differences, 0.03)
        assert minimum_detectable_effect(differences, n=needed) <= 0.03
        assert minimum_detectable_effect(differences, n=needed - 1) > 0.03


def test_the_formula_by_hand() -> None:
    """(1.960 + 0.842) * s / sqrt(n), s = 0.5 and n = 100."""
    differences = np.tile([0.5, -0.5], 50)
    s = 0.5 * math.sqrt(100 / 99)
    assert minimum_detectable_effect(differences) == pytest.approx(2.8016 * s / 10, rel=1e-4)


def test_a_test_needs_six_questions() -> None:
    """Five that all improve still give 2 / 2 ** 5 = 0.0625."""
    assert fewest_questions() == 6
    assert wilcoxon_p_value([1] * 6, [0] * 6) <= 0.05 < wilcoxon_p_value([1] * 5, [0] * 5)
    assert fewest_questions(0.01) == 8
    assert questions_needed([1.0, 1.0, 1.0], 1.0) == 6


def test_comparing_many_gives_each_its_difference_interval_and_adjusted_value() -> None:
    """The planted gain is found and lies in its interval; the copy of the baseline is no gain."""
    rng = np.random.default_rng(6)
    baseline = (rng.random(200) < 0.5).astype(float)
    gains = np.where(rng.random(200) < 0.4, 1.0, baseline)
    compared = compare_paired({"gains": gains, "shuffle": baseline, "same": baseline}, "shuffle")
    assert [*compared] == ["gains", "same"]
    found = compared["gains"]
    assert found.difference == pytest.approx((gains - baseline).mean())
    assert found.interval[0] < 0.2 < found.interval[1]
    assert found.adjusted == pytest.approx(2 * found.p_value)
    assert found.adjusted < 0.001
    assert found.detectable == minimum_detectable_effect(gains - baseline) < found.difference
    assert compared["same"].p_value == compared["same"].adjusted == 1.0
    assert compared["same"].difference == 0.0


def test_what_cannot_be_compared_is_refused() -> None:
    """With the value that is wrong."""
    with pytest.raises(ValueError, match="no baseline 'shuffle' among u_shape"):
        compare_paired({"u_shape": [1, 0]}, "shuffle")
    with pytest.raises(ValueError, match=r"\(3,\) and \(2,\)"):
        wilcoxon_p_value([1, 0, 1], [1, 0])
    with pytest.raises(ValueError, match="finite"):
        wilcoxon_p_value([math.nan, 0], [1, 0])
    with pytest.raises(ValueError, match=r"got -0\.1"):
        holm([0.5, -0.1])
    with pytest.raises(ValueError, match="at least 2 questions"):
        minimum_detectable_effect([0.5])
    with pytest.raises(ValueError, match=r"\[-1, 1\], got 2.0"):
        minimum_detectable_effect([0.5, 2.0])
    with pytest.raises(ValueError, match="n must be at least 1 question, got 0"):
        minimum_detectable_effect([0.5, 0.1], n=0)
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        questions_needed([0.5, 0.1], 0.1, power=1.5)
    with pytest.raises(ValueError, match=r"effect must be a difference in \(0, 1\], got 0"):
        questions_needed([0.5, 0.1], 0)
