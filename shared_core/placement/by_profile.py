"""Placements made from a model's measured position profile (PositionalBias, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared_core.placement.base import Placement
from shared_core.sensitivity.profile import PositionProfile


def fill_by_preference(preference: Sequence[float]) -> tuple[int, ...]:
    """Return slot -> rank: rank 0 takes the most preferred slot; equal ones go front first."""
    slots = sorted(range(len(preference)), key=lambda slot: (-preference[slot], slot))
    order = [0] * len(slots)
    for rank, slot in enumerate(slots):
        order[slot] = rank
    return tuple(order)


def _needs(name: str, what: str) -> ValueError:
    return ValueError(
        f"placement {name!r} is made from {what}: give psi= a PositionProfile, "
        "or the path or name of a saved one"
    )


@dataclass(frozen=True)
class MaxRelevance(Placement):
    """The best passages into the slots where the model answers best.

    Slots are taken by decreasing `PositionProfile.accuracy`: the mean of what the profile's
    `measure` averaged, which may be the probability of the answer (``"logprob"``) or the share of
    attention (``"attention"``) instead of the accuracy of the answers.
    """

    name = "max_relevance"
    needs_profile = True

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        if profile is None or profile.accuracy is None:
            raise _needs(self.name, "the accuracy by slot of a position profile")
        return fill_by_preference(profile.accuracy_at(k))


@dataclass(frozen=True)
class MinDistraction(Placement):
    """The best passages into the slots where a distractor does least harm.

    Slots are taken by increasing distracting effect in the position profile.
    """

    name = "min_distraction"
    needs_profile = True

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        if profile is None or profile.distraction is None:
            raise _needs(self.name, "the distracting effect by slot of a position profile")
        return fill_by_preference([-effect for effect in profile.distraction_at(k)])
