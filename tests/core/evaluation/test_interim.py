"""Looks at a running probe: together they are wrong no more often than one look would be."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy import stats

from shared_core.evaluation.interim import InterimAnalyses, interim_decision


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("count", range(1, 12))
def test_a_random_walk_crosses_the_bounds_no_more_often_than_allowed(
    confidence: float, count: int
) -> None:
    """Simulated, at evenly spaced looks; by Pocock's own levels it does as often as allowed."""
    analyses = InterimAnalyses(total=20 * count, count=count, confidence=confidence)
    walks = np.random.default_rng(2).standard_normal((100_000, count)).cumsum(axis=1)
    bound = stats.norm.ppf((1 + analyses.confidence_at) / 2)
    crossed = (abs(walks) > bound * np.sqrt(range(1, count + 1))).any(axis=1).mean()
    assert crossed <= 1 - confidence + 0.003
    if confidence == 0.95 and count < 11:
        assert crossed >= 0.047


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
    ("interval", "reason"),
    [
        ((1.0004, 1.2), "the interval 1.0004 to 1.200 lies above 1.0"),
        ((0.5, 0.99996), "the interval 0.500 to 0.99996 lies below 1.0"),
        ((0.7, 1.2), None),
        ((0.7, 1.0), None),
        ((math.nan, math.nan), None),
    ],
)
def test_a_look_stops_where_the_interval_leaves_the_threshold_out(
    interval: tuple[float, float], reason: str | None
) -> None:
    """The threshold itself is not exceeded, and bounds have the decimals that show it."""
    assert interim_decision(interval) == reason
    assert interim_decision((1.05, 1.2), threshold=1.1) is None
