"""What a probe measures: how one question with a passage in one slot is asked and valued."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from shared_core.evaluation.answers import Grader, grade
from shared_core.generation.asking import Request, Response
from shared_core.generation.base import Generator, ScoringModel
from shared_core.sensitivity.questions import ProbeQuestion
from shared_core.sensitivity.templates import ABSTAIN, ABSTENTION, ANSWER, PromptTemplate

MeasureName: TypeAlias = Literal["accuracy", "logprob", "distraction"]


@dataclass(frozen=True)
class Measure(ABC):
    """One way to value what a model makes of a passage in a slot.

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
    def responses(self, model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
        """Ask the model."""

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

    def responses(self, model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the answers."""
        return model.generate([prompt for (prompt,) in requests])

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return the grade."""
        return grade(self.grader, cast(str, response), question.answers)


@dataclass(frozen=True)
class AnswerProbability(Measure):
    """The probability of the first accepted answer: its tokens' geometric mean."""

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt and the answer."""
        return (self._prompt(question, slot, k), f" {question.answers[0]}")

    def responses(self, model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the answers' log-probabilities, token by token."""
        return _log_probabilities(model, requests)

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return exp of the mean log-probability."""
        tokens = cast("list[float]", response)
        return min(1.0, math.exp(sum(tokens) / len(tokens)))


class _Distraction(Measure):
    def _prompt(self, question: ProbeQuestion, slot: int, k: int) -> str:
        if question.hard_distractor is None:
            raise ValueError(
                f"question {question.question!r} has no hard_distractor, "
                "whose distracting effect is to be measured"
            )
        passages = question.passages(slot, k, gold=question.hard_distractor)
        return self.template.render(passages, question.question)


@dataclass(frozen=True)
class ExactDistraction(_Distraction):
    """The distracting effect of the hard distractor in the slot: 1 - P(abstain).

    PositionalBias, eq. 1 over the whole context (section 4), the other passages being weak
    distractors, and P the model's probability of the abstention.
    """

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt and the abstention."""
        return (self._prompt(question, slot, k), f" {ABSTENTION}")

    def responses(self, model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the abstention's log-probabilities, token by token."""
        return _log_probabilities(model, requests)

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return 1 less the abstention's probability."""
        return max(0.0, 1.0 - math.exp(sum(cast("list[float]", response))))


@dataclass(frozen=True)
class SampledDistraction(_Distraction):
    """The same for a model that only answers: 1 unless the answer abstains."""

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return the prompt."""
        return (self._prompt(question, slot, k),)

    def responses(self, model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the answers."""
        return model.generate([prompt for (prompt,) in requests])

    def value(self, question: ProbeQuestion, response: Response) -> float:
        """Return 0 if the answer abstains, else 1."""
        return float(ABSTENTION.casefold() not in cast(str, response).casefold())


def check_measure(name: MeasureName) -> None:
    """Raise ValueError if there is no measure of that name."""
    if name not in get_args(MeasureName):
        raise ValueError(f"measure must be 'accuracy', 'logprob' or 'distraction', got {name!r}")


def resolve_measure(
    name: MeasureName, model: Generator, template: PromptTemplate | None, grader: Grader
) -> Measure:
    """Return the measure of that name for a model.

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
    return (ExactDistraction if scores else SampledDistraction)(template or ABSTAIN)


def _log_probabilities(model: Generator, requests: Sequence[Request]) -> list[Response]:
    prompts, continuations = zip(*requests, strict=True)
    scored = cast(ScoringModel, model).log_probabilities(prompts, continuations)
    return [list(tokens) for tokens in scored]
