"""The rows of GoodPositions' tables: a method, and a model's answers to every question."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeAlias

from shared_core.attention import (
    Case,
    OneRound,
    RankGPT,
    SelfElicit,
    TwoRound,
    attention_by_position,
)
from shared_core.attention.rounds import RELEVANT_LAST, PlacedAnswer
from shared_core.cli.console import Console
from shared_core.cli.reproduce.data import RankedQuestion
from shared_core.cli.reproduce.failing import each_answered, failures_of
from shared_core.cli.reproduce.tables import watched
from shared_core.comparison import Failure
from shared_core.errors import GenerationError
from shared_core.generation import HuggingFaceModel, Journal, ModelClient
from shared_core.sensitivity.curve import PositionalCurve

FEWEST = 2
"""Questions, for an interval."""

Row: TypeAlias = tuple[str, str, int]
"""Method, order and number of documents."""

LooksFirst: TypeAlias = RankGPT | SelfElicit | TwoRound
"""A method that sees a prompt before the one that it answers."""

SEED = 42
"""Of the unordered prompts (appendix B.2 has it of everything)."""

TWO_ROUNDS: Mapping[str, LooksFirst] = {
    "RankGPT": RankGPT(),
    "AttentionSort": TwoRound(estimator="attention_sorting", placement=RELEVANT_LAST),
    "ICR": TwoRound(estimator="icr", placement=RELEVANT_LAST),
    "SELFELICIT": SelfElicit(),
    "Our": TwoRound(),
    "Our Ranking + Default": TwoRound(placement=RELEVANT_LAST),
}
"""Methods that see a prompt first; the last one is of Table 5 alone."""

BY_RANK = {"Default, original": "back_first", "Default, reverse": "front_first"}
ON_A_CURVE = {
    "U-shaped, original": "attention_u_shape",
    "U-shaped, reverse": "attention_u_shape_reversed",
}
"""Methods of one prompt, as Table 3 calls them: documents placed by the ranking they come in."""


@dataclass(frozen=True)
class Kept:
    """A model whose answers are kept in a journal."""

    model: HuggingFaceModel
    asker: ModelClient

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    @property
    def batch_size(self) -> int:
        """That of the model."""
        return self.model.batch_size

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return the answers, from the journal or the model."""
        return [str(answer) for answer in self.asker.answers([(prompt,) for prompt in prompts])]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Asks a model the questions row by row, but not those that it failed on before.

    Attributes
    ----------
    console
        Where it says what is asked.
    model, journal
        The model that is asked, and where the answers that need no attention are kept.
    questions
        What it is asked, each with the same number of documents, best first.
    failed
        Question -> how the model failed on it, in the rows asked so far.
    """

    console: Console
    model: HuggingFaceModel
    journal: Journal
    questions: Sequence[RankedQuestion]
    failed: dict[int, Failure] = field(default_factory=dict, init=False)

    def ask(self, row: Row, *, place: str) -> dict[int, str]:
        """Ask the questions of a row that have not failed before; return the answers by question.

        `place` is the number of the row, as displayed.

        Raises
        ------
        GenerationError
            If fewer than two questions are left, or for a passing reason that did not pass.
        """
        method, order, k = row
        left = self._left
        cases = [self._ranked(self.questions[number], order, k) for number in left]
        answer = (
            partial(self._read_first, TWO_ROUNDS[method])
            if method in TWO_ROUNDS
            else partial(self._at_once, self._one_round(method))
        )
        what = f"{method}, {order}, {k} documents"
        with watched(self.console, f"{place}: {what}", len(cases)) as advance:
            found = each_answered(answer, cases, self._kept.asker, on_answer=advance)
        self.failed.update({each.question: each for each in failures_of(found, left, what)})
        if len(self._left) < FEWEST:
            first = next(iter(self.failed.values()))
            raise GenerationError(
                f"the model has failed on {len(self.failed)} of {len(self.questions)} questions, "
                f"and the tables take at least {FEWEST}; the first failure: {first.reason}"
            )
        return {
            number: each for number, each in zip(left, found, strict=True) if isinstance(each, str)
        }

    @property
    def _left(self) -> list[int]:
        return [number for number in range(len(self.questions)) if number not in self.failed]

    def _at_once(
        self, method: OneRound, ranked: Sequence[Case], advance: Callable[[int], None]
    ) -> list[str]:
        orders = [method.order(self.model, case, range(len(case.documents))) for case in ranked]
        return method.answers(self._kept, ranked, orders, on_answer=advance)

    def _read_first(
        self, method: LooksFirst, ranked: Sequence[Case], advance: Callable[[int], None]
    ) -> list[str]:
        # The first prompt has the best document next to the question.
        cases = [replace(case, documents=case.documents[::-1]) for case in ranked]
        if isinstance(method, RankGPT):
            placed: Sequence[PlacedAnswer] = method.run(self._kept, cases, on_answer=advance)
        else:
            placed = method.run(self.model, cases, on_answer=advance)
        return [each.answer for each in placed]

    @property
    def _kept(self) -> Kept:
        return Kept(self.model, ModelClient.of(self.model, journal=self.journal))

    def _ranked(self, question: RankedQuestion, order: str, k: int) -> Case:
        """Return a case with the best documents first, as they are known or as drawn."""
        documents = [*question.documents]
        if order == "Unordered":
            random.Random(f"{SEED} {question.question}").shuffle(documents)
        return Case(question=question.question, documents=documents[:k])

    def _one_round(self, method: str) -> OneRound:
        if method in ON_A_CURVE:
            return OneRound(placement=ON_A_CURVE[method], curve=self._curve)
        return OneRound(placement=BY_RANK[method])

    @cached_property
    def _curve(self) -> PositionalCurve:
        """Positional attention of the model, read from the same questions without answers.

        Questions whose attention cannot be read were left out in earlier rows.
        """
        asked = [self.questions[number].as_probed for number in self._left]
        with watched(self.console, "positional curve", 2 * len(asked)) as advance:
            found = attention_by_position(
                self.model, asked, k=len(self.questions[0].documents), on_answer=advance
            )
        return found.curve
