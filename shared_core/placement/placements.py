"""Placements by rank: what a placement is, the baselines, the U-shape, and those by a profile.

Sequential, Inverse and Shuffle are the baselines of PositionalBias (section 5); every gain of a
cleverer placement is measured against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from shared_core.checking import check_choice, check_count, check_counts_of
from shared_core.sensitivity.profile import PositionProfile

Edge = Literal["start", "end"]

Place: TypeAlias = tuple[str, float]
"""The document of a passage, and its position there; infinite where it is not known."""


@dataclass(frozen=True)
class Placement:
    """A rule that says which rank goes into which slot.

    Subclasses set `name` and `order`; and `needs_profile`, if they are made from a position
    profile, or `reads_places`, if from where the passages stand in their documents.
    """

    name: ClassVar[str]
    needs_profile: ClassVar[bool] = False
    reads_places: ClassVar[bool] = False

    def __call__(self, k: int, profile: PositionProfile | None = None) -> tuple[int, ...]:
        """Return slot -> rank for `k` passages, a bijection on 0..k-1.

        Parameters
        ----------
        k
            Number of passages, >= 0. Rank 0 is the best; slot 0 comes first in the prompt.
        profile
            The model's position profile, for placements that are made from one.

        Raises
        ------
        ValueError
            If `k` is not an integer >= 0, the placement needs a profile and gets none, or its
            order loses a passage or repeats one.
        """
        count = check_count(k, "k", 0)
        order = tuple(map(index, self.order(count, profile)))
        if sorted(order) != [*range(count)]:
            raise ValueError(
                f"placement {self.name!r} must put each of {count} passages into one slot, got "
                f"{order}: its order has to be a permutation of range({count})"
            )
        return order

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank; called with ``k >= 0``."""
        raise NotImplementedError

    def of_places(self, places: Sequence[Place]) -> Placement:
        """Return the placement of passages whose places are known, by rank."""
        return self


@dataclass(frozen=True)
class Sequential(Placement):
    """Best first, in ranked order."""

    name = "sequential"

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        return range(k)


@dataclass(frozen=True)
class Inverse(Placement):
    """Best last: ranked order reversed."""

    name = "inverse"

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        return range(k - 1, -1, -1)


@dataclass(frozen=True)
class SourceOrder(Placement):
    """Passages of one document in reading order; documents by their best passage.

    Yu, Xu and Akkiraju (arXiv 2409.01666) measured that long-context models answer better from many
    chunks of one document in its order than by relevance. A passage of no known document stands
    for itself; where no places are known, the order is the ranked one.

    Attributes
    ----------
    places
        Document and position of each passage by rank; filled in for each query.
    """

    name = "source_order"
    reads_places = True
    places: tuple[Place, ...] = ()

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        if not self.places:
            return range(k)
        best: dict[str, int] = {}
        for rank, (document, _) in enumerate(self.places):
            best.setdefault(document, rank)
        return sorted(range(k), key=lambda rank: (best[self.places[rank][0]], self.places[rank][1]))

    def of_places(self, places: Sequence[Place]) -> SourceOrder:
        """Return the placement of passages whose places are known, by rank."""
        return replace(self, places=tuple(places))


@dataclass(frozen=True)
class Shuffle(Placement):
    """A random order, the same for the same seed and k.

    Attributes
    ----------
    seed
        Seed of the permutation, >= 0.
    """

    name = "shuffle"
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts_of(self, {"seed": 0})

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        order: list[int] = np.random.default_rng(self.seed).permutation(k).tolist()
        return order


def u_shape_order(k: int, *, best_at: Edge = "start") -> list[int]:
    """Return slot -> rank of the U-shape, 0-based, best first.

    CAUS eq. 4 and Algorithm 1 (Gear 2); pi(i) of eq. 4 is read as *the rank in slot i*, as only
    that agrees with Algorithm 1. Even ranks fill the slots from the front, odd ranks from the back.
    ``best_at="end"`` is the mirror image, so that the best passage is next to the question. Unlike
    in the frameworks' own long-context reorder, the end that gets the best passage does not depend
    on whether `k` is odd.

    Parameters
    ----------
    k
        Number of passages, >= 0.
    best_at
        The edge that gets the best passage.

    Raises
    ------
    ValueError
        If `k` is not an integer >= 0, or `best_at` is neither ``"start"`` nor ``"end"``.

    Examples
    --------
    >>> u_shape_order(5)
    [0, 2, 4, 3, 1]
    >>> u_shape_order(4, best_at="end")
    [1, 3, 2, 0]
    """
    k = check_count(k, "k", 0)
    check_choice(best_at, "best_at", Edge)
    order = [*range(0, k, 2), *reversed(range(1, k, 2))]
    return order if best_at == "start" else order[::-1]


@dataclass(frozen=True)
class UShape(Placement):
    """U-shape of CAUS (eq. 4): the best passages at the edges, the weakest in the middle."""

    name = "u_shape"

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        return u_shape_order(k)


@dataclass(frozen=True)
class UShapeBestLast(Placement):
    """The mirror image of `UShape`: the best passage of all last, next to the question."""

    name = "u_shape_best_last"

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        return u_shape_order(k, best_at="end")


def fill_by_preference(preference: Sequence[float]) -> tuple[int, ...]:
    """Return slot -> rank: rank 0 takes the most preferred slot; equal ones go front first."""
    slots = sorted(range(len(preference)), key=lambda slot: -preference[slot])
    order = [0] * len(slots)
    for rank, slot in enumerate(slots):
        order[slot] = rank
    return tuple(order)


def _needs(name: str, what: str) -> ValueError:
    return ValueError(
        f"placement {name!r} is made from {what}: give psi= a PositionProfile, "
        "or the path or name of a saved one; where there is no psi=, use another placement"
    )


@dataclass(frozen=True)
class MaxRelevance(Placement):
    """The best passages into the slots where the model answers best (PositionalBias, section 5).

    Slots are taken by decreasing `PositionProfile.accuracy`: the mean of what the profile's
    `measure` averaged, which may be the probability of the answer (``"logprob"``) or the share of
    attention (``"attention"``) instead of the accuracy of the answers.
    """

    name = "max_relevance"
    needs_profile = True

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        if profile is None or profile.accuracy is None:
            raise _needs(self.name, "the accuracy by slot of a position profile")
        return fill_by_preference(profile.accuracy_at(k))


@dataclass(frozen=True)
class MinDistraction(Placement):
    """The best passages into the slots where a distractor does least harm (PositionalBias).

    Slots are taken by increasing distracting effect in the position profile.
    """

    name = "min_distraction"
    needs_profile = True

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        """Return slot -> rank."""
        if profile is None or profile.distraction is None:
            raise _needs(self.name, "the distracting effect by slot of a position profile")
        return fill_by_preference([-effect for effect in profile.distraction_at(k)])
