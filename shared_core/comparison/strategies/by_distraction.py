"""The strategy that weighs the relevance of a passage against its harm as a distractor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shared_core.comparison.strategies.base import Order, RankedCase, StrategyContext
from shared_core.evaluation.distraction import JudgedRanking
from shared_core.generation.base import ScoringModel
from shared_core.generation.checking import Request
from shared_core.placement.by_utility import distraction_placement
from shared_core.sensitivity.distraction import abstention_request, distracting_effect


@dataclass(frozen=True)
class DistractionAware:
    """Puts the highest utility where the model reads best; utility is relevance less harm.

    Relevance is `RankedCase.relevance`, and harm the distracting effect (lambda = 1): 1 less the
    probability that the model abstains when it is shown the passage alone. A passage that holds
    the answer keeps the model from abstaining as well, and it is not known here which ones do.
    """

    name: ClassVar[str] = "distraction_aware"
    context: StrategyContext
    _effects: dict[tuple[str, str], float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.context.model, ScoringModel):
            raise ValueError(
                f"strategy {self.name!r} reads the probability of an abstention from a local "
                f"model, and {self.context.model.name!r} is not one"
            )
        self.context.profile_for(self.name).accuracy_at(2)

    def reads(self, cases: Sequence[RankedCase]) -> list[Request]:
        """Return one request for each passage of the cases that have several."""
        return [
            abstention_request(self.context.abstain.render([text], question), exact=True)
            for question, text in _pairs(cases)
        ]

    def orders(self, cases: Sequence[RankedCase]) -> list[list[Order]]:
        """Return one order per case; the model is read where it has not been yet."""
        # Where there is a journal, what is forgotten there has to be read again.
        known = self._effects if self.context.journal is None else {}
        new = [pair for pair in dict.fromkeys(_pairs(cases)) if pair not in known]
        effects = distracting_effect(
            self.context.model,
            [
                JudgedRanking(question=each, passages=(text,), relevant=(False,))
                for each, text in new
            ],
            template=self.context.abstain,
            journal=self.context.journal,
        )
        known.update(zip(new, (effect for (effect,) in effects), strict=True))
        return [[self._order(case, known)] for case in cases]

    def _order(self, case: RankedCase, effects: Mapping[tuple[str, str], float]) -> Order:
        if len(case.documents) < 2:
            return tuple(range(len(case.documents)))
        return distraction_placement(
            case.relevance,
            [effects[case.question, text] for text in case.documents],
            self.context.profile_for(self.name),
        )


def _pairs(cases: Sequence[RankedCase]) -> Iterator[tuple[str, str]]:
    """Yield question and passage, except of a case with a single passage: it has only one order."""
    for case in cases:
        if len(case.documents) > 1:
            yield from ((case.question, text) for text in case.documents)
