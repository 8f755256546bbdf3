"""What a probe measures: how a question with a passage in one slot is asked and scored."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from shared_core.evaluation.answers import Grader, grade
from shared_core.evaluation.distraction import abstention_request, effect_of
from shared_core.generation.ask import Request, Response
from shared_core.generation.models import Generator, ScoringModel
from shared_core.generation.templates import ABSTAIN, ANSWER, PromptTemplate
from shared_core.sensitivity.questions import ProbeQuestion

MeasureName: TypeAlias = Literal["accuracy", "logprob", "distraction"]


@dataclass(frozen=True)
class Measure(ABC):
    """One way to score how a model reads a passage in a slot.

    Attributes
    ----------
    template
        The prompt.
    """

    template: PromptTemplate

    @abstractmethod
    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return what the model is asked."""

    @abstractmethod
    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return the value of a response, in [0, 1]."""

    def _prompt(self, question: ProbeQuestion, slot: int, k: int) -> str:
        return self.template.render(question.passages(slot, k), question.question)


@dataclass(frozen=True)
class Accuracy(Measure):
    """The graded answer with the gold passage in the slot."""

    grader: Grader

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt."""
        return (self._prompt(question, slot, k),)

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return the grade."""
        return grade(self.grader, cast(str, response), question.answers)


@dataclass(frozen=True)
class AnswerProbability(Measure):
    """The probability of the first accepted answer: its tokens' geometric mean."""

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt and the answer."""
        return (self._prompt(question, slot, k), f" {question.answers[0]}")

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return exp of the mean log-probability."""
        tokens = cast("list[float]", response)
        return min(1.0, math.exp(sum(tokens) / len(tokens)))


@dataclass(frozen=True)
class Distraction(Measure):
    """The distracting effect of the hard distractor in the slot: 1 - P(abstain).

    PositionalBias, eq. 1 over the whole context (section 4), the other passages being weak
    distractors.

    Attributes
    ----------
    exact
        If true, P is the model's probability of the abstention; otherwise 1 if the answer abstains,
        else 0.
    """

    exact: bool

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt and, where the model scores it, the abstention."""
        return abstention_request(self._prompt(question, slot, k), exact=self.exact)

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return 1 less the abstention's probability."""
        return effect_of(response)

    def _prompt(self, question: ProbeQuestion, slot: int, k: int) -> str:
        if question.hard_distractor is None:
            raise ValueError(
                f"question {question.question!r} has no hard_distractor, "
                "whose distracting effect is to be measured"
            )
        passages = question.passages(slot, k, gold=question.hard_distractor)
        return self.template.render(passages, question.question)


def resolve_measure(
    name: MeasureName, model: Generator, template: PromptTemplate | None, grader: Grader
) -> Measure:
    """Return the measure of the given name for a model.

    Raises
    ------
    ValueError
        If the model cannot give what the measure needs.
    """
    scores = isinstance(model, ScoringModel)
    if name == "accuracy":
        return Accuracy(template or ANSWER, grader)
    if name == "logprob":
        if not scores:
            raise ValueError(
                f"measure='logprob' needs a local model, and {model.name} gives answers only; "
                "use measure='accuracy'"
            )
        return AnswerProbability(template or ANSWER)
    return Distraction(template or ABSTAIN, scores)
