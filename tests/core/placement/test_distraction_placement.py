"""Distraction-aware placement: no order is worth more, and harm goes where it is read least."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from shared_core import PositionProfile
from shared_core.placement import distraction_placement


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_no_permutation_is_worth_more(k: int, seed: int) -> None:
    """Every order is tried, with profiles of other lengths too."""
    rng = np.random.default_rng(seed)
    profile = PositionProfile(model="m", accuracy=tuple(rng.random(rng.integers(1, 8)).tolist()))
    relevance, effects, harm = rng.random(k), rng.random(k), float(rng.random() * 3)
    weights = profile.accuracy_at(k)

    def worth(order: tuple[int, ...]) -> float:
        utility = relevance - harm * effects
        return math.fsum(weights[slot] * utility[at] for slot, at in enumerate(order))

    placed = distraction_placement(relevance, effects, profile, harm=harm)
    assert sorted(placed) == list(range(k))
    flat = PositionProfile(model="flat", accuracy=(0.5,) * k)
    assert distraction_placement([0.5] * k, [0.1] * k, flat) == tuple(range(k)), "ties stay"
    best = max(worth(order) for order in itertools.permutations(range(k)))
    assert worth(placed) == pytest.approx(best, abs=1e-12)


def test_a_profile_without_accuracy_is_refused() -> None:
    """There is nothing to weigh the slots by."""
    only = PositionProfile(model="distraction-only", distraction=(0.1, 0.2))
    with pytest.raises(ValueError, match="'distraction-only' holds no accuracy"):
        distraction_placement([0.5], [0.1], only)
