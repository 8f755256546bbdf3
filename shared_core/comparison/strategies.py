"""Arrangement strategies: in which orders the passages of a question are put before the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from shared_core.comparison.by_attention import ATTENTION, TWO_ROUND, ByCurve, TwoRounds
from shared_core.comparison.by_distraction import DISTRACTION_AWARE, DistractionAware
from shared_core.comparison.records import BASELINES
from shared_core.comparison.strategy import Means, Order, RankedCase, Strategy
from shared_core.generation.checking import Request
from shared_core.placement import PLACEMENTS, Placement, Shuffle, resolve_placement

DEFAULTS = (*BASELINES, "inverse", "u_shape")
"""The strategies that need to know nothing of the model."""

STRATEGIES = (*PLACEMENTS, ATTENTION, TWO_ROUND, DISTRACTION_AWARE)
"""Names of all strategies."""


AnyStrategy: TypeAlias = str | Placement | Strategy
"""A name in `STRATEGIES`, a placement, or a strategy of the caller's own."""


def strategy_name(spec: AnyStrategy) -> str:
    """Return the name of a strategy, or of a placement as one.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if isinstance(spec, str) and spec not in STRATEGIES:
        raise ValueError(f"no strategy {spec!r}; there are {', '.join(STRATEGIES)}")
    return spec if isinstance(spec, str) else spec.name


def make_strategy(spec: AnyStrategy, means: Means) -> Strategy:
    """Return the strategy of that name, of a placement, or the caller's own as it is.

    Raises
    ------
    ValueError
        If there is none of that name, or it needs what is not there.
    """
    if not isinstance(spec, str | Placement):
        return spec
    if spec == "shuffle":
        return Shuffled(means)
    if spec == TWO_ROUND:
        return TwoRounds(means)
    if spec == ATTENTION:
        return ByCurve(means)
    if spec == DISTRACTION_AWARE:
        return DistractionAware(means)
    strategy_name(spec)
    return Placed(means, resolve_placement(spec))


@dataclass(frozen=True)
class Placed:
    """A placement that looks at ranks alone."""

    means: Means
    placement: Placement

    def __post_init__(self) -> None:
        if self.placement.needs_profile:
            self.means.profile_for(self.name)
        self.placement(2, self.means.profile)

    @property
    def name(self) -> str:
        """That of the placement."""
        return self.placement.name

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return nothing."""
        return []

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return one order a case."""
        return [[self.placement(len(case.documents), self.means.profile)] for case in cases]


@dataclass(frozen=True)
class Shuffled:
    """Random orders, other ones for each question, so that no slot is favoured by the draw."""

    name: ClassVar[str] = "shuffle"
    means: Means

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return nothing."""
        return []

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return `Means.shuffles` orders a case; they depend on its question and k alone."""
        return [
            [
                Shuffle(seed=self._seed(case.question, number))(len(case.documents))
                for number in range(self.means.shuffles)
            ]
            for case in cases
        ]

    def _seed(self, question: str, number: int) -> int:
        text = json.dumps([self.means.seed, number, question])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
