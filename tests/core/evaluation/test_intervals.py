"""Intervals: they cover as often as they say, and survive samples that show no variation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shared_core.evaluation.intervals import (
    bootstrap_interval,
    contrast_interval,
    independent_contrast_interval,
    mean_interval,
    paired_difference_interval,
)

Floats = npt.NDArray[np.float64]


def psi(means: Floats) -> Floats:
    """The position sensitivity index of each row, by the slots."""
    top, middle, bottom = means[:, 0], means[:, (means.shape[1] - 1) // 2], means[:, -1]
    undefined = (top == 0) & (middle == 0) & (bottom == 0)
    return np.where(undefined, np.nan, (top + bottom) / (2 * middle + 1e-7))


def first(means: Floats) -> Floats:
    return means[:, 0]


def answered(
    accuracy: tuple[float, ...], n: int, rng: np.random.Generator, *, likeness: float = 0.0
) -> Floats:
    """Draw 0/1 outcomes; `likeness` makes a question easy or hard in all its slots."""
    shared, own = rng.standard_normal((n, 1)), rng.standard_normal((n, len(accuracy)))
    ability = math.sqrt(likeness) * shared + math.sqrt(1 - likeness) * own
    return (ability < stats.norm.ppf(accuracy)).astype(np.float64)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [2, 50])
def test_a_sample_without_variation_is_not_certainty(value: float, n: int) -> None:
    """All rows equal: the interval is finite, holds what was seen, and has a width."""
    lower, upper = bootstrap_interval(np.full((n, 3), value), first)
    assert 0 <= lower <= value <= upper <= 1
    assert upper - lower > 0.01
    low, high = bootstrap_interval(np.full((n, 3), value), psi)
    assert low < 1 < high
    low, high = paired_difference_interval(np.full(n, value), np.full(n, value))
    assert low < 0 < high


def test_undefined_resamples_are_left_out_unless_they_are_the_most() -> None:
    """The quantiles are of the rest; of too small a rest there is none."""

    def undefined(share: float) -> Any:
        return lambda means: np.where(np.arange(len(means)) < share * len(means), np.nan, 0.25)

    assert bootstrap_interval(np.ones((9, 1)), undefined(0.4)) == (0.25, 0.25)
    assert all(map(math.isnan, bootstrap_interval(np.ones((9, 1)), undefined(0.6))))


def test_the_interval_is_of_the_seed() -> None:
    """The same again for the same seed; and the global random state is left alone."""
    outcomes = answered((0.9, 0.6, 0.8), 60, np.random.default_rng(0))
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert bootstrap_interval(outcomes, psi, seed=1) == bootstrap_interval(outcomes, psi, seed=1)
    assert bootstrap_interval(outcomes, psi, seed=1) != bootstrap_interval(outcomes, psi, seed=2)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_an_interval_stays_what_it_was() -> None:
    """Of ten questions, which stay whole; any change of the method changes it."""
    slots = np.random.default_rng(7).random((10, 3))
    assert bootstrap_interval(slots, psi) == pytest.approx((0.52509, 1.05273), abs=1e-5)
    rows = np.random.default_rng(7).random((10, 1))
    assert bootstrap_interval(rows, first) == pytest.approx((0.36436, 0.75530), abs=1e-5)
    difference = paired_difference_interval(rows[:, 0], 1 - rows[:, 0])
    assert difference == pytest.approx((-0.25639, 0.47235), abs=1e-5)


@given(
    rows=st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=20),
    confidence=st.floats(0.5, 0.99),
)
def test_any_outcomes_have_an_interval(rows: list[list[float]], confidence: float) -> None:
    """In order, within the range of the statistic, wider for a higher confidence."""
    lower, upper = bootstrap_interval(rows, first, confidence=confidence, resamples=200)
    assert 0 <= lower <= upper <= 1
    low, high = bootstrap_interval(rows, first, confidence=0.999, resamples=200)
    assert low <= lower
    assert upper <= high


def test_published_accuracies_have_the_interval_of_independent_slots() -> None:
    """Close to the bootstrap where slots are independent, wider where they are alike.

    Those of 1.0 keep a width, by the number of questions.
    """
    rng = np.random.default_rng(4)
    accuracy, contrast = (0.8, 0.7, 0.8), (0.5, -1, 0.5)
    for likeness, low, high in ((0.0, 0.9, 1.1), (0.8, 0.5, 0.8)):
        outcomes = answered(accuracy, 2000, rng, likeness=likeness)
        published = independent_contrast_interval(outcomes.mean(axis=0), 2000, contrast)
        ratio = np.diff(contrast_interval(outcomes, contrast))[0] / np.diff(published)[0]
        assert low < ratio < high
    few, many = (independent_contrast_interval((1.0,) * 3, n, contrast) for n in (50, 5000))
    assert few[0] < many[0] < 0 < many[1] < few[1]


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 10), (10, 10), (47, 50), (1, 2)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_band_of_a_curve_is_wilsons(right: int, n: int, confidence: float) -> None:
    """As SciPy computes it."""
    expected = stats.binomtest(right, n).proportion_ci(confidence, method="wilson")
    lower, upper = mean_interval([right / n, 0.5], n, confidence=confidence)
    assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert lower[0] <= right / n <= upper[0]
    assert lower.shape == upper.shape == (2,)


def test_a_small_paired_difference_is_that_of_agresti_and_min() -> None:
    """Their interval adds 1/2 to each cell of the 2 x 2 table, which is where ours comes from."""
    n, better, worse = 40, 9, 2
    a, b = np.zeros(n), np.zeros(n)
    a[:better], b[better : better + worse] = 1, 1
    size, gain, loss = n + 2, better + 0.5, worse + 0.5
    mean = (gain - loss) / size
    error = math.sqrt((gain + loss) / size - mean**2) / math.sqrt(size)
    expected = mean + np.array([-1, 1]) * stats.t.ppf(0.975, n - 1) * error
    np.testing.assert_allclose(paired_difference_interval(a, b), expected, atol=0.02)
    contrast = contrast_interval(np.column_stack([a, b]), (1, -1))
    np.testing.assert_allclose(contrast, expected, atol=1e-3)


def test_one_other_outcome_does_not_make_the_rest_certain() -> None:
    """Nor that nothing lies on its other side: 29 of 30 questions are still alike."""
    alike = bootstrap_interval(np.full((30, 1), 0.67), first)
    lower, upper = bootstrap_interval(np.array([[0.67]] * 29 + [[0.83]]), first)
    assert lower < 0.65
    assert upper - lower > 0.45 * (alike[1] - alike[0])
    a, b = np.full(30, 0.67), np.array([0.67] * 29 + [0.6])
    none, one = (np.diff(paired_difference_interval(a, other))[0] for other in (a, b))
    assert one > 0.85 * none


@pytest.mark.parametrize("n", [30, 100])
def test_many_small_changes_are_known_to_be_small(n: int) -> None:
    """As those of probabilities: 94 to 97% of the intervals hold the truth, not all of them."""
    rng, held = np.random.default_rng(n), 0
    for seed in range(500):
        a = rng.uniform(0.3, 0.6, n)
        b = a - rng.normal(0.01, 0.05, n)
        lower, upper = paired_difference_interval(a, b, resamples=1000, seed=seed)
        held += lower <= 0.01 <= upper
    assert 0.93 <= held / 500 <= 0.98


def test_a_mean_of_ten_orders_that_moves_by_tenths_is_made_of_answers_that_are_wrong() -> None:
    """So the one order, right so far, may be wrong as well: by all of a question, not a tenth."""
    shuffled = np.ones((50, 10))
    shuffled[:20, 0] = 0
    lower, upper = paired_difference_interval(np.ones(50), shuffled)
    assert lower < 0.01
    assert upper - lower > 0.07


def test_one_question_has_no_interval() -> None:
    """Its spread is not known."""
    calls: list[Callable[[], object]] = [
        lambda: bootstrap_interval(np.ones((1, 3)), first),
        lambda: contrast_interval(np.ones((1, 2)), (1, -1)),
        lambda: paired_difference_interval([1.0], [0.0]),
        lambda: independent_contrast_interval([0.5, 0.5], 1, (1, -1)),
        lambda: mean_interval([0.5], 1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="at least 2 questions, got 1"):
            call()
