"""Strategies that read the attention of a local model (GoodPositions)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shared_core.attention import Case, OneRound, TwoRound
from shared_core.comparison.strategies.base import Order, StrategyContext
from shared_core.errors import GenerationError
from shared_core.generation.base import Generator
from shared_core.generation.checking import Request
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.identity import model_identity


@dataclass(frozen=True)
class ByCurve:
    """One round: U-shaped by the model's known attention to each position."""

    name: ClassVar[str] = "attention"
    context: StrategyContext

    def __post_init__(self) -> None:
        _local(self.context.model, self.name)
        if self.context.curve is None:
            raise ValueError(
                f"strategy {self.name!r} needs the model's positional curve (curve=, or --curve); "
                "`posrag attention MODEL` measures one"
            )

    def reads(self, cases: Sequence[Case]) -> list[Request]:
        """Return nothing, because the curve is known."""
        return []

    def orders(self, cases: Sequence[Case]) -> list[list[Order]]:
        """Return one order per case."""
        placing = OneRound(
            placement="attention_u_shape", curve=self.context.curve, template=self.context.template
        )
        return [
            [placing.order(self.context.model, case, range(len(case.documents)))] for case in cases
        ]


@dataclass(frozen=True)
class TwoRounds:
    """Two rounds: ranked and placed by the model's attention in the first one."""

    name: ClassVar[str] = "two_round"
    context: StrategyContext

    def __post_init__(self) -> None:
        _local(self.context.model, self.name)

    def reads(self, cases: Sequence[Case]) -> list[Request]:
        """Return one request for each case of several documents; it stands for the order found."""
        return [self._request(case) for case in cases if len(case.documents) > 1]

    def orders(self, cases: Sequence[Case]) -> list[list[Order]]:
        """Return one order per case, from the journal or from a first round."""
        new = [case for case in cases if self._kept(case) is None]
        read = dict(zip(map(self._request, new), self._read(new), strict=True))
        if self.context.journal is not None:
            for request, order in read.items():
                self.context.journal.add(self._identity, request, json.dumps(order))
        return [
            [read[self._request(case)] if kept is None else kept]
            for case, kept in ((case, self._kept(case)) for case in cases)
        ]

    def _read(self, cases: Sequence[Case]) -> list[Order]:
        if not cases:
            return []
        method = TwoRound(template=self.context.template)
        try:
            found = method.first(_local(self.context.model, self.name), cases)
        except ValueError as error:
            raise GenerationError(str(error)) from error
        return [placed.order for placed in found]

    def _kept(self, case: Case) -> Order | None:
        if len(case.documents) < 2:
            return tuple(range(len(case.documents)))
        journal = self.context.journal
        kept = None if journal is None else journal.get(self._identity, self._request(case))
        return tuple(json.loads(kept)) if isinstance(kept, str) else None

    def _request(self, case: Case) -> Request:
        return (self.context.template.render(case.documents, case.question), "order by attention")

    @property
    def _identity(self) -> str:
        return model_identity(self.context.model)


def _local(model: Generator, strategy: str) -> HuggingFaceModel:
    if isinstance(model, HuggingFaceModel):
        return model
    raise ValueError(
        f"strategy {strategy!r} reads the attention of a local model, and {model.name!r} is not one"
    )
