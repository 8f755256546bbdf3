"""Looks at a running probe: together they are wrong no more often than one look would be."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy import stats

from shared_core.evaluation import InterimAnalyses, bootstrap_interval
from shared_core.evaluation.interim import best_case_interval, interim_decision
from tests.core.evaluation.test_intervals import Floats, answered, psi


@pytest.mark.parametrize(
    ("count", "allowed"), [(1, 0.05), (2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158)]
)
def test_the_levels_are_those_of_pococks_table(count: int, allowed: float) -> None:
    """To all the digits that are printed."""
    level = InterimAnalyses(total=1200, count=count).confidence_at
    assert 1 - level == pytest.approx(allowed, abs=5e-5)


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_a_random_walk_crosses_the_bounds_as_often_as_allowed(confidence: float) -> None:
    """Simulated, at looks that rounding has left unevenly spaced."""
    analyses = InterimAnalyses(total=107, count=5, confidence=confidence)
    assert len(set(np.diff(analyses.at))) > 1
    steps = np.diff((0, *analyses.at)) ** 0.5
    walks = (np.random.default_rng(2).standard_normal((200_000, 5)) * steps).cumsum(axis=1)
    bound = stats.norm.ppf((1 + analyses.confidence_at) / 2)
    crossed = (abs(walks) > bound * np.sqrt(analyses.at)).any(axis=1).mean()
    assert crossed == pytest.approx(1 - confidence, abs=0.003)


@pytest.mark.parametrize(
    ("total", "count", "at"),
    [
        (107, 5, (21, 42, 64, 85, 107)),
        (100, 5, (20, 40, 60, 80, 100)),
        (99, 5, (24, 49, 74, 99)),
        (39, 5, (39,)),
        (2, 5, (2,)),
        (500, 1, (500,)),
    ],
)
def test_looks_are_evenly_spaced_and_never_at_a_handful(
    total: int, count: int, at: tuple[int, ...]
) -> None:
    """The last is at the end; a small run has fewer."""
    assert InterimAnalyses(total=total, count=count).at == at


@pytest.mark.parametrize(
    ("interval", "best_case", "reason"),
    [
        ((1.0004, 1.2), None, "the interval 1.0004 to 1.200 lies above 1.0"),
        ((0.5, 0.99996), None, "the interval 0.500 to 0.99996 lies below 1.0"),
        ((0.7, 0.99), (0.8, 1.0), "the interval 0.700 to 0.990 lies below 1.0"),
        ((0.7, 1.2), (1.0, 1.3), "could not rise above 1.0 .* it would begin at 1.000$"),
        ((0.7, 1.2), (1.01, 1.5), None),
        ((0.7, 1.2), None, None),
        ((0.7, 1.0), None, None),
        ((math.nan, math.nan), (math.nan, math.nan), None),
    ],
)
def test_a_look_stops_where_more_questions_would_change_nothing(
    interval: tuple[float, float], best_case: tuple[float, float] | None, reason: str | None
) -> None:
    """The threshold itself is not exceeded, and bounds have the decimals that show it."""
    found = interim_decision(interval, best_case=best_case)
    assert (found is None) == (reason is None)
    assert re.search(reason or "", found or "")
    assert interim_decision((1.05, 1.2), threshold=1.1) is None


def best(outcomes: Floats, remaining: int) -> tuple[float, float]:
    return best_case_interval(
        outcomes, psi, edges=[0, 2], middle=[1], remaining=remaining, confidence=0.95
    )


def test_no_other_end_of_the_run_gives_a_higher_lower_bound() -> None:
    """Whatever the remaining questions do, with the resamples the same."""
    rng = np.random.default_rng(5)
    so_far = answered((0.8, 0.8, 0.8), 60, rng, likeness=0.4)
    highest = best(so_far, 40)[0]
    for _ in range(20):
        rest = answered(tuple(rng.uniform(0.01, 0.99, 3)), 40, rng, likeness=0.4)
        assert bootstrap_interval(np.vstack([so_far, rest]), psi)[0] <= highest


def test_a_lost_run_stops_and_an_open_one_goes_on() -> None:
    """The same answers, with few questions left and with many; and none left is no best case."""
    so_far = answered((0.75, 0.75, 0.75), 180, np.random.default_rng(3), likeness=0.4)
    interval = bootstrap_interval(so_far, psi)
    assert "could not" in str(interim_decision(interval, best_case=best(so_far, 5)))
    assert interim_decision(interval, best_case=best(so_far, 200)) is None
    assert best(so_far, 0) == interval
