"""The order that a model's attention gives to some texts, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared_core.attention.answering import Case, PlacedAnswer
from shared_core.attention.estimators import ranking_of
from shared_core.attention.one_round import OneRound
from shared_core.attention.two_round import TwoRound
from shared_core.generation.local_model import LocalModel
from shared_core.sensitivity.curve import PositionalCurve


@dataclass(frozen=True, kw_only=True)
class AttentionMethod:
    """A model, and how to place by its attention.

    Attributes
    ----------
    model
        The model.
    two_rounds
        What makes a text relevant, where it is then put, and the prompt.
    curve
        What the model attends to by position. With a curve the model is not asked anything, and
        only its tokenizer is loaded: the texts are ranked as they come.

    Raises
    ------
    ValueError
        If there is a curve, and the placement does not use it.
    """

    model: LocalModel
    two_rounds: TwoRound
    curve: PositionalCurve | None = None

    def __post_init__(self) -> None:
        if self.curve is not None:
            self._one_round(self.curve)

    def answer(self, cases: Sequence[Case]) -> list[PlacedAnswer]:
        """Answer in two rounds, as `TwoRound.run` does with the model."""
        with self.model.alone() as model:
            return self.two_rounds.run(model, cases)

    def place(
        self, texts: Sequence[str], question: str | None
    ) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
        """Return slot -> text, and an explanation of each slot.

        Raises
        ------
        ValueError
            If there is neither a question nor a curve, a text is empty, or the prompt is longer
            than the model's context.
        GenerationError
            If the model cannot be loaded, or its attention cannot be read.
        """
        if self.curve is not None:
            return self._on_curve(self.curve, texts, question or "")
        if question is None:
            raise ValueError(
                "which documents a model attends to depends on the question: give the query, or a "
                "curve to place by position alone"
            )
        case = Case(question=question, documents=texts)
        with self.model.alone() as model:
            found = self.two_rounds.place(model, case)
        return found.order, self.explain(found)

    def explain(self, found: PlacedAnswer) -> list[dict[str, Any]]:
        """Return rank, slot, score, placement and estimator of each slot, JSON-able."""
        ranks = {document: rank for rank, document in enumerate(ranking_of(found.scores))}
        shared = {
            "placement": self.two_rounds.placement,
            "estimator": self.two_rounds.estimator,
        }
        return [
            {"rank": ranks[document], "slot": slot, "score": found.scores[document], **shared}
            for slot, document in enumerate(found.order)
        ]

    def _on_curve(
        self, curve: PositionalCurve, texts: Sequence[str], question: str
    ) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
        case = Case(question=question, documents=texts)
        order = self._one_round(curve).order(self.model.encoder, case, range(len(texts)))
        shared = {"placement": self.two_rounds.placement, "curve": curve.model}
        return order, [{"rank": rank, "slot": slot, **shared} for slot, rank in enumerate(order)]

    def _one_round(self, curve: PositionalCurve) -> OneRound:
        rounds = self.two_rounds
        return OneRound(placement=rounds.placement, curve=curve, template=rounds.template)
