"""Looks at a running probe: together they are wrong no more often than one look would be."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.evaluation.sequential import Looks, Verdict, best_case_interval, judge

Floats = npt.NDArray[np.float64]


def psi(means: Floats) -> Floats:
    """The position sensitivity index of each row, of three slots."""
    top, middle, bottom = means.T
    undefined = (top == 0) & (middle == 0) & (bottom == 0)
    return np.where(undefined, np.nan, (top + bottom) / (2 * middle + 1e-7))


def answered(accuracy: tuple[float, ...], n: int, rng: np.random.Generator) -> Floats:
    """Draw 0/1 outcomes of questions that are easy or hard in all slots alike."""
    ability = math.sqrt(0.4) * rng.standard_normal((n, 1)) + math.sqrt(0.6) * rng.standard_normal(
        (n, len(accuracy))
    )
    return (ability < stats.norm.ppf(accuracy)).astype(np.float64)


def probed(outcomes: Floats, looks: Looks, *, confidence: float) -> tuple[Verdict, int]:
    """Look at the outcomes until a look stops; return what it said, and after how many."""
    for n in looks.at:
        interval = bootstrap_interval(outcomes[:n], psi, confidence=confidence, resamples=1000)
        verdict = judge(interval)
        if verdict.stop:
            break
    return verdict, n


@pytest.mark.slow
@pytest.mark.parametrize(("accuracy", "total"), [(0.8, 100), (0.9, 200), (0.5, 200)])
def test_five_looks_at_equal_slots_are_wrong_in_one_run_of_twenty(
    accuracy: float, total: int
) -> None:
    """And in more than twice as many if each look took itself for the only one."""
    rng, looks, runs = np.random.default_rng(total), Looks(total=total), 400
    wrong = dict.fromkeys((looks.confidence_at, looks.confidence), 0)
    for _ in range(runs):
        outcomes = answered((accuracy,) * 3, total, rng)
        for confidence in wrong:
            wrong[confidence] += probed(outcomes, looks, confidence=confidence)[0].stop
    two_errors = 2 * math.sqrt(0.05 * 0.95 / runs)
    assert wrong[looks.confidence_at] / runs < 0.05 + two_errors
    assert wrong[looks.confidence] / runs > 0.10


@pytest.mark.parametrize(
    ("accuracy", "outcome"), [((0.9, 0.6, 0.9), "above"), ((0.6, 0.9, 0.6), "below")]
)
def test_a_real_bias_is_seen_early(accuracy: tuple[float, ...], outcome: str) -> None:
    """With far fewer questions than the whole run has, and on the right side."""
    rng, looks = np.random.default_rng(0), Looks(total=200)
    seen = [
        probed(answered(accuracy, 200, rng), looks, confidence=looks.confidence_at)
        for _ in range(40)
    ]
    assert {verdict.outcome for verdict, _ in seen} == {outcome}
    assert np.mean([n for _, n in seen]) < 80


@pytest.mark.parametrize(
    ("count", "allowed"), [(1, 0.05), (2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158)]
)
def test_the_levels_are_those_of_pococks_table(count: int, allowed: float) -> None:
    """To all the digits that are printed."""
    assert 1 - Looks(total=1200, count=count).confidence_at == pytest.approx(allowed, abs=5e-5)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_a_random_walk_crosses_the_bounds_as_often_as_allowed(confidence: float) -> None:
    """Simulated, at looks that rounding has left unevenly spaced."""
    looks = Looks(total=107, count=5, confidence=confidence)
    assert len(set(np.diff(looks.at))) > 1
    steps = np.diff((0, *looks.at)) ** 0.5
    walks = (np.random.default_rng(2).standard_normal((200_000, 5)) * steps).cumsum(axis=1)
    bound = stats.norm.ppf((1 + looks.confidence_at) / 2)
    crossed = (abs(walks) > bound * np.sqrt(looks.at)).any(axis=1).mean()
    assert crossed == pytest.approx(1 - confidence, abs=0.003)


def test_more_looks_cost_more_confidence_each() -> None:
    """But less than Bonferroni's, since the looks share questions."""
    levels = [1 - Looks(total=1000, count=count).confidence_at for count in range(1, 21)]
    assert levels == sorted(levels, reverse=True)
    assert all(level > 0.05 / count for count, level in enumerate(levels[1:], start=2))


@pytest.mark.parametrize(
    ("total", "count", "at"),
    [
        (200, 5, (40, 80, 120, 160, 200)),
        (107, 5, (21, 42, 64, 85, 107)),
        (100, 5, (20, 40, 60, 80, 100)),
        (99, 5, (24, 49, 74, 99)),
        (50, 5, (25, 50)),
        (39, 5, (39,)),
        (2, 5, (2,)),
        (500, 1, (500,)),
    ],
)
def test_looks_are_evenly_spaced_and_never_at_a_handful(
    total: int, count: int, at: tuple[int, ...]
) -> None:
    """The last is at the end; a small run has fewer."""
    assert Looks(total=total, count=count).at == at


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total": 0}, "total must be an integer >= 1, got 0"),
        ({"total": 100, "count": 0}, "count must be an integer >= 1, got 0"),
        ({"total": 100, "confidence": 95}, "confidence must lie between 0 and 1, got 95"),
    ],
)
def test_looks_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    """When they are planned, not when the first is due."""
    with pytest.raises(ValueError, match=message):
        Looks(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("interval", "best_case", "outcome"),
    [
        ((1.01, 1.4), None, "above"),
        ((0.7, 0.99), None, "below"),
        ((0.7, 0.99), (0.8, 1.0), "below"),
        ((0.7, 1.2), (0.98, 1.3), "cannot"),
        ((0.7, 1.2), (1.0, 1.3), "cannot"),
        ((0.7, 1.2), (1.01, 1.5), "undecided"),
        ((0.7, 1.2), None, "undecided"),
        ((1.0, 1.2), None, "undecided"),
        ((0.7, 1.0), None, "undecided"),
        ((math.nan, math.nan), (math.nan, math.nan), "undecided"),
    ],
)
def test_a_look_stops_where_more_questions_would_change_nothing(
    interval: tuple[float, float], best_case: tuple[float, float] | None, outcome: str
) -> None:
    """The threshold itself is not exceeded."""
    verdict = judge(interval, best_case=best_case)
    assert verdict.outcome == outcome
    assert verdict.stop == (outcome != "undecided")
    assert "1.0" in verdict.reason


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((1.0004, 1.2), "the interval 1.0004 to 1.200 lies above 1.0"),
        ((0.5, 0.99996), "the interval 0.500 to 0.99996 lies below 1.0"),
        ((1.0, 2e7), "the interval 1.000 to above 1,000 does not exclude 1.0"),
    ],
)
def test_bounds_are_written_out_until_the_sentence_is_true(
    interval: tuple[float, float], said: str
) -> None:
    """Three decimals would make them the threshold itself."""
    assert judge(interval).reason == said


def test_another_threshold_moves_the_verdict() -> None:
    """And the sentence with it."""
    assert judge((1.05, 1.2)).outcome == "above"
    assert judge((1.05, 1.2), threshold=1.1) == Verdict(
        "undecided", "the interval 1.050 to 1.200 does not exclude 1.1"
    )


def test_a_bound_of_a_ratio_over_all_but_nothing_is_not_written_out() -> None:
    """Its figures would be those of what keeps the denominator above 0."""
    assert judge((2.222, 2e7)) == Verdict(
        "above", "the interval 2.222 to above 1,000 lies above 1.0"
    )
    assert judge((0.5, 999.5)).reason == "the interval 0.500 to 999.500 does not exclude 1.0"


def best(outcomes: Floats, remaining: int) -> tuple[float, float]:
    return best_case_interval(
        outcomes, psi, edges=[0, 2], middle=[1], remaining=remaining, confidence=0.95
    )


def test_no_other_end_of_the_run_gives_a_higher_lower_bound() -> None:
    """Whatever the remaining questions do, with the resamples the same."""
    rng = np.random.default_rng(5)
    so_far = answered((0.8, 0.8, 0.8), 60, rng)
    highest = best(so_far, 40)[0]
    for _ in range(30):
        rest = answered(tuple(rng.uniform(0.01, 0.99, 3)), 40, rng)
        assert bootstrap_interval(np.vstack([so_far, rest]), psi)[0] <= highest


def test_a_lost_run_stops_and_an_open_one_goes_on() -> None:
    """The same answers, with few questions left and with many."""
    so_far = answered((0.75, 0.75, 0.75), 180, np.random.default_rng(3))
    interval = bootstrap_interval(so_far, psi)
    assert judge(interval, best_case=best(so_far, 5)).outcome == "cannot"
    assert judge(interval, best_case=best(so_far, 200)).outcome == "undecided"


def test_the_best_case_with_nothing_left_is_the_interval_itself() -> None:
    """So it may be asked for at any look."""
    so_far = answered((0.7, 0.75, 0.7), 60, np.random.default_rng(3))
    assert best(so_far, 0) == bootstrap_interval(so_far, psi)


def test_a_slot_that_is_edge_and_middle_counts_as_middle() -> None:
    """With two passages the top is the middle too, and the index falls with it."""

    def of_two(means: Floats) -> Floats:
        return (means[:, 0] + means[:, 1]) / (2 * means[:, 0] + 1e-7)

    so_far = np.ones((30, 2))
    got = best_case_interval(
        so_far, of_two, edges=[0, 1], middle=[0], remaining=30, confidence=0.95
    )
    assert got == bootstrap_interval(np.vstack([so_far, np.tile([0, 1], (30, 1))]), of_two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"remaining": -1}, "remaining must be an integer >= 0, got -1"),
        ({"edges": [0, 3]}, r"there are 3 columns, got \[0, 3\]"),
        ({"middle": [-1]}, r"there are 3 columns, got \[-1\]"),
        ({"outcomes": np.ones(3)}, r"questions by slots, got shape \(3,\)"),
    ],
)
def test_a_best_case_out_of_range_is_refused(options: dict[str, object], message: str) -> None:
    """A column counted from the end is a slip too."""
    given = {"outcomes": np.ones((9, 3)), "edges": [0, 2], "middle": [1], "remaining": 5} | options
    with pytest.raises(ValueError, match=message):
        best_case_interval(given.pop("outcomes"), psi, confidence=0.95, **given)  # type: ignore[arg-type]
