"""The experiments of "From Bias to Benefit: Place Good Documents in Good Positions"."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from shared_core.arrays import Scores
from shared_core.attention import (
    AnsweringMethod,
    Case,
    OneRound,
    PlacedAnswer,
    RankGPT,
    SelfElicit,
    TwoRound,
    attention_by_position,
)
from shared_core.attention.two_round import RELEVANT_LAST
from shared_core.cli.console import Console
from shared_core.cli.reproduce.data import RankedQuestion
from shared_core.cli.reproduce.published import METHODS, NUMBERS, PLACED
from shared_core.cli.reproduce.tables import watched
from shared_core.evaluation import GRADERS, grade
from shared_core.generation import Asker, HuggingFaceModel, Journal
from shared_core.placement.curve import PositionalCurve
from shared_core.sensitivity import ProbeQuestion
from shared_core.sensitivity.questions import check_context, check_questions

GRADER = "subspan"
"""A short answer stands in what the model says (section 3.2)."""

SEED = 42
"""Of the unordered prompts (appendix B.2 has it of everything)."""

ORDERS = ("Unordered", "Ordered")

TWO_ROUNDS: Mapping[str, AnsweringMethod] = {
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

ALIASES = {
    "Vanilla": "Default, original",
    "Vanilla + Default": "Default, original",
    "Vanilla + U-shaped": "U-shaped, original",
    "Our Ranking + U-shaped": "Our",
}
"""What the other tables call the same."""

FEWER = (3, 5)
"""Documents in Table 5, before all of them."""


@dataclass(frozen=True)
class Kept:
    """A model whose answers are kept in a journal."""

    model: HuggingFaceModel
    asker: Asker

    @property
    def name(self) -> str:
        """That of the model."""
        return self.model.name

    @property
    def batch_size(self) -> int:
        """That of the model."""
        return self.model.batch_size

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return the answers, of the journal or of the model."""
        return [str(answer) for answer in self.asker.answers([(prompt,) for prompt in prompts])]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What one row of a table came to, question by question.

    Attributes
    ----------
    answers
        What the model said last.
    outcomes
        How right it was, in [0, 1], shape (n,).
    """

    answers: tuple[str, ...]
    outcomes: Scores


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A model, and the questions that it is asked in the manner of each table.

    Attributes
    ----------
    console
        Where it says what is asked.
    model, journal
        Who is asked, and where the answers are kept that take no attention.
    questions
        At least 2, all with the same number of documents, >= 3, best first.

    Raises
    ------
    ValueError
        If there are fewer, or a question is there twice.
    """

    console: Console
    model: HuggingFaceModel
    journal: Journal
    questions: Sequence[RankedQuestion]

    _known: dict[tuple[str, str, int], Answers] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # What the curve takes, before hours are spent on the methods that do without.
        if len(self.questions) < 2:
            raise ValueError(f"the tables take at least 2 questions, got {len(self.questions)}")
        check_context(self.k)
        check_questions(self._asked, self.k)

    @property
    def k(self) -> int:
        """Number of documents of a question."""
        return len(self.questions[0].documents)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of documents of Table 5."""
        return (*(k for k in FEWER if k < self.k), self.k)

    def table_2(self) -> dict[str, dict[str, Answers]]:
        """Return, by order and method, what came of it."""
        return {
            order: {method: self._row(method, order, self.k) for method in METHODS[order]}
            for order in ORDERS
        }

    def table_3(self) -> dict[str, Answers]:
        """Return, by placement of the ranked documents, what came of it."""
        return {placement: self._row(placement, "Ordered", self.k) for placement in PLACED}

    def table_5(self) -> dict[str, dict[str, dict[int, Answers]]]:
        """Return, by order, method and number of documents, what came of it."""
        return {
            order: {
                method: {k: self._row(method, order, k) for k in self.numbers}
                for method in NUMBERS[order]
            }
            for order in ORDERS
        }

    def _row(self, method: str, order: str, k: int) -> Answers:
        """Return what came of one method; the same method has several names."""
        key = ALIASES.get(method, method), order, k
        if key not in self._known:
            texts = self._answers(*key)
            grader = GRADERS[GRADER]
            outcomes = [
                grade(grader, text, question.answers)
                for text, question in zip(texts, self.questions, strict=True)
            ]
            self._known[key] = Answers(answers=texts, outcomes=np.array(outcomes))
        return self._known[key]

    def _answers(self, method: str, order: str, k: int) -> tuple[str, ...]:
        ranked = [self._ranked(question, order, k) for question in self.questions]
        if method in TWO_ROUNDS:
            return self._read_first(TWO_ROUNDS[method], ranked, f"{method}, {order}, {k} documents")
        one_round = self._one_round(method)
        with watched(self.console, f"{method}, {order}, {k} documents", len(ranked)) as advance:
            orders = [one_round.order(self.model, case, range(k)) for case in ranked]
            return tuple(one_round.answers(self._kept, ranked, orders, on_answer=advance))

    def _read_first(
        self, method: AnsweringMethod, ranked: Sequence[Case], what: str
    ) -> tuple[str, ...]:
        # The first prompt has the best document next to the question.
        cases = [replace(case, documents=case.documents[::-1]) for case in ranked]
        with watched(self.console, what, len(cases)) as advance:
            if isinstance(method, RankGPT):
                placed: Sequence[PlacedAnswer] = method.run(self._kept, cases, on_answer=advance)
            else:
                placed = method.run(self.model, cases, on_answer=advance)
        return tuple(each.answer for each in placed)

    @property
    def _kept(self) -> Kept:
        return Kept(self.model, Asker.of(self.model, journal=self.journal))

    def _ranked(self, question: RankedQuestion, order: str, k: int) -> Case:
        """Return a case with the best documents first, as they are known or as drawn."""
        documents = [*question.documents]
        if order == "Unordered":
            random.Random(f"{SEED} {question.question}").shuffle(documents)
        return Case(question=question.question, documents=documents[:k])

    def _one_round(self, method: str) -> OneRound:
        if method in ON_A_CURVE:
            return OneRound(placement=ON_A_CURVE[method], curve=self.curve)
        return OneRound(placement=BY_RANK[method])

    @cached_property
    def curve(self) -> PositionalCurve:
        """What the model attends to by position, read off the same questions without answers."""
        with watched(self.console, "positional curve", 2 * len(self._asked)) as advance:
            found = attention_by_position(self.model, self._asked, k=self.k, on_answer=advance)
        return found.curve

    @property
    def _asked(self) -> list[ProbeQuestion]:
        return [
            ProbeQuestion(
                question=each.question,
                answers=each.answers,
                gold=each.documents[0],
                distractors=each.documents[1:],
            )
            for each in self.questions
        ]
