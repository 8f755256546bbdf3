"""What a strategy is, and what it may draw upon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from shared_core.attention import Case
from shared_core.generation.base import Generator
from shared_core.generation.checking import Request
from shared_core.generation.journal import Journal
from shared_core.generation.templates import PromptTemplate
from shared_core.placement.curve import PositionalCurve
from shared_core.sensitivity.profile import PositionProfile

Order: TypeAlias = tuple[int, ...]
"""Slot -> rank."""


@dataclass(frozen=True, kw_only=True)
class Means:
    """What strategies may draw upon.

    Attributes
    ----------
    model, template
        What is going to answer, and to which prompt.
    profile
        The model's position profile, for ``"max_relevance"`` and ``"min_distraction"``.
    curve
        What the model attends to by position, for ``"attention"``.
    journal
        Where orders that the model was asked for are kept.
    shuffles, seed
        Orders a question for ``"shuffle"``, and their seed.
    """

    model: Generator
    template: PromptTemplate
    profile: PositionProfile | None
    curve: PositionalCurve | None
    journal: Journal | None
    shuffles: int
    seed: int


class Strategy(Protocol):
    """Something that arranges the passages of each question, by whatever it knows of them."""

    @property
    def name(self) -> str:
        """Name, under which its results are reported."""
        ...

    def reads(self, cases: Sequence[Case]) -> list[Request]:
        """Return what is kept in the journal of cases that the model has to be read on first."""
        ...

    def orders(self, cases: Sequence[Case]) -> list[list[Order]]:
        """Return one order or several for each case, whose documents come best first.

        Raises
        ------
        GenerationError
            If an order cannot be had from the model.
        """
        ...
