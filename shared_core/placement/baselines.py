"""Placements that look at nothing: ranked order, its reverse, and a seeded shuffle.

Sequential, Inverse and Shuffle are the baselines of PositionalBias (section 5); every gain of a
cleverer placement is measured against them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared_core.checking import check_counts_of
from shared_core.placement.base import Placement
from shared_core.sensitivity.profile import PositionProfile


@dataclass(frozen=True)
class Sequential(Placement):
    """Best first, in ranked order."""

    name = "sequential"

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        return tuple(range(k))


@dataclass(frozen=True)
class Inverse(Placement):
    """Best last: ranked order reversed."""

    name = "inverse"

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        return tuple(range(k - 1, -1, -1))


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

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        """Return slot -> rank."""
        return tuple(np.random.default_rng(self.seed).permutation(k).tolist())


@dataclass(frozen=True)
class FrontFirst(Sequential):
    """RetriVex's order for models that read the front best: the same as `Sequential`."""

    name = "front_first"


@dataclass(frozen=True)
class BackFirst(Inverse):
    """RetriVex's order for models that read the back best: the same as `Inverse`."""

    name = "back_first"
