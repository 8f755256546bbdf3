"""PositionalBias: Table 1's profile, and the two arrangements made from a profile."""

from __future__ import annotations

from shared_core import PLACEMENTS, PositionProfile
from shared_core.placement import MaxRelevance, MinDistraction

TABLE_1_NONE = (0.8080, 0.7900, 0.7920, 0.7993, 0.8273)
"""Accuracy by slot, in shares, of Table 1's row "None"."""


def profile(distraction: tuple[float, ...] | None = None) -> PositionProfile:
    return PositionProfile(model="table-1", accuracy=TABLE_1_NONE, distraction=distraction)


def test_max_relevance_takes_slots_by_decreasing_accuracy() -> None:
    """The best passages go, in order, to slots 5, 1, 4, 3, 2."""
    order = MaxRelevance()(5, profile())
    slots_by_rank = [order.index(rank) + 1 for rank in range(5)]
    assert slots_by_rank == [5, 1, 4, 3, 2]


def test_min_distraction_takes_slots_by_increasing_effect() -> None:
    """Effects 0.3 0.1 0.2 0.5 0.4: the best passages go to slots 2, 3, 1, 5, 4."""
    order = MinDistraction()(5, profile((0.3, 0.1, 0.2, 0.5, 0.4)))
    slots_by_rank = [order.index(rank) + 1 for rank in range(5)]
    assert slots_by_rank == [2, 3, 1, 5, 4]


def test_equal_slots_are_taken_front_first() -> None:
    """A flat profile prefers no slot, so the ranked order stands."""
    flat = PositionProfile(model="flat", accuracy=(0.5,) * 4, distraction=(0.1,) * 4)
    assert MaxRelevance()(4, flat) == MinDistraction()(4, flat) == (0, 1, 2, 3)


def test_shuffle_is_the_same_for_the_same_seed_and_differs_between_seeds() -> None:
    """A baseline that others are measured against has to be repeatable."""
    shuffle = PLACEMENTS["shuffle"]
    assert shuffle(seed=3)(20) == shuffle(seed=3)(20)  # type: ignore[call-arg]
    assert shuffle(seed=3)(20) != shuffle(seed=4)(20)  # type: ignore[call-arg]
