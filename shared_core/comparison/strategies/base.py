"""What a strategy is, and what it may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from shared_core.attention import Case
from shared_core.generation.base import Generator
from shared_core.generation.checking import Request
from shared_core.generation.journal import Journal
from shared_core.generation.templates import PromptTemplate
from shared_core.scoring.normalization import min_max
from shared_core.sensitivity.curve import PositionalCurve
from shared_core.sensitivity.profile import PositionProfile

Order: TypeAlias = tuple[int, ...]
"""Slot -> rank."""


@dataclass(frozen=True, kw_only=True)
class RankedCase(Case):
    """A question and the passages that a pipeline found for it, best first.

    Attributes
    ----------
    scores
        What the documents were ranked by, higher is better; None where only their order is known.
    """

    scores: Sequence[float] | None = None

    @property
    def relevance(self) -> tuple[float, ...]:
        """How relevant each document is in comparison with the others, in [0, 1].

        The scores, min-max normalised; without them ``(k - rank) / k``, rank 0 being the best.
        """
        if self.scores is None:
            k = len(self.documents)
            return tuple((k - rank) / k for rank in range(k))
        return tuple(min_max(self.scores).tolist())


@dataclass(frozen=True, kw_only=True)
class StrategyContext:
    """What strategies may use.

    Attributes
    ----------
    model, template
        The model that is going to answer, and its prompt.
    abstain
        The prompt that allows the model to abstain, for ``"distraction_aware"``.
    profile
        The model's position profile, for the placements made from one and for
        ``"distraction_aware"``.
    curve
        What the model attends to by position, for ``"attention"``.
    journal
        Where readings of the model are kept.
    shuffles, seed
        Orders per question for ``"shuffle"``, and their seed.
    """

    model: Generator
    template: PromptTemplate
    abstain: PromptTemplate
    profile: PositionProfile | None
    curve: PositionalCurve | None
    journal: Journal | None
    shuffles: int
    seed: int

    def profile_for(self, strategy: str) -> PositionProfile:
        """Return the profile, or raise ValueError if a strategy needs it and there is none."""
        if self.profile is None:
            raise ValueError(
                f"strategy {strategy!r} needs the model's position profile (profile=, or "
                "--profile); `posrag probe` measures one"
            )
        return self.profile


class Strategy(Protocol):
    """Arranges the passages of each question, by whatever it knows about them."""

    @property
    def name(self) -> str:
        """Name under which its results are reported."""
        ...

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return the requests that the model must answer before these cases can be ordered."""
        ...

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return one order or several for each case, whose documents are ranked best first.

        Raises
        ------
        GenerationError
            If the model does not give an order.
        """
        ...
