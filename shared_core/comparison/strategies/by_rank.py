"""Strategies that use ranks alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shared_core.comparison.strategies.base import Order, RankedCase, StrategyContext
from shared_core.generation.checking import Request
from shared_core.placement import Placement, Shuffle


@dataclass(frozen=True)
class Placed:
    """One placement, the same for every question."""

    placement: Placement
    context: StrategyContext

    def __post_init__(self) -> None:
        if self.placement.needs_profile:
            self.context.profile_for(self.name)
        self.placement(2, self.context.profile)

    @property
    def name(self) -> str:
        """Name of the placement."""
        return self.placement.name

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return nothing."""
        return []

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return one order per case."""
        return [[self.placement(len(case.documents), self.context.profile)] for case in cases]


@dataclass(frozen=True)
class Shuffled:
    """Random orders, different for each question, so that the draw favours no slot."""

    name: ClassVar[str] = "shuffle"
    context: StrategyContext

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return nothing."""
        return []

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return `context.shuffles` orders per case, which depend only on its question and k."""
        return [
            [
                Shuffle(seed=self._seed(case.question, number))(len(case.documents))
                for number in range(self.context.shuffles)
            ]
            for case in cases
        ]

    def _seed(self, question: str, number: int) -> int:
        text = json.dumps([self.context.seed, number, question])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
