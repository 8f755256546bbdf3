"""What a probe measures: how a question with a passage in each slot is asked and scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from shared_core.arrays import Scores
from shared_core.evaluation.graders import Grader, grade
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.models import Generator, ScoringModel
from shared_core.generation.templates import ABSTAIN, ABSTENTION, ANSWER, PromptTemplate
from shared_core.sensitivity.distraction import effect_of
from shared_core.sensitivity.questions import ProbeQuestion

MeasureName: TypeAlias = Literal["accuracy", "logprob", "distraction"]


@dataclass(frozen=True)
class Measure:
    """One way to score how a model reads a passage in a slot.

    Attributes
    ----------
    name
        Its name.
    template
        The prompt.
    value
        Question and response -> value, in [0, 1].
    passages
        Question, slot and k -> the passages of the prompt.
    scored
        Question -> the text whose probability is asked for; None: an answer is.
    """

    name: MeasureName
    template: PromptTemplate
    value: Callable[[ProbeQuestion, Response], float]
    passages: Callable[[ProbeQuestion, int, int], list[str]] = ProbeQuestion.passages
    scored: Callable[[ProbeQuestion], str] | None = None

    def request(self, question: ProbeQuestion, slot: int, k: int) -> Request:
        """Return what the model is asked."""
        prompt = self.template.render(self.passages(question, slot, k), question.question)
        return (prompt,) if self.scored is None else (prompt, f" {self.scored(question)}")


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
        return Measure(
            name,
            template or ANSWER,
            lambda question, response: grade(grader, cast(str, response), question.answers),
        )
    if name == "distraction":
        # PositionalBias, eq. 1 over the whole context (section 4), the others weak distractors
        return Measure(
            name,
            template or ABSTAIN,
            lambda _, response: effect_of(response),
            _with_hard_distractor,
            (lambda _: ABSTENTION) if scores else None,
        )
    if not scores:
        raise ValueError(
            f"measure='logprob' needs a local model, and {model.name} gives answers only; "
            "use measure='accuracy'"
        )
    return Measure(
        name,
        template or ANSWER,
        lambda _, response: probability_of(cast("list[float]", response)),
        scored=lambda question: question.answers[0],
    )


def probability_of(tokens: Sequence[float]) -> float:
    """Return the geometric mean of probabilities, given as natural logarithms."""
    return min(1.0, math.exp(sum(tokens) / len(tokens)))


def _with_hard_distractor(question: ProbeQuestion, slot: int, k: int) -> list[str]:
    if question.hard_distractor is None:
        raise ValueError(
            f"question {question.question!r} has no hard_distractor, "
            "whose distracting effect is to be measured"
        )
    return question.passages(slot, k, gold=question.hard_distractor)


@dataclass(frozen=True)
class Rotation:
    """One model, one measure: every question with its passage in every slot.

    Turns questions into requests, and responses into values by question and slot.
    """

    model: Generator
    measure: Measure
    client: ModelClient
    slots: tuple[int, ...]
    k: int

    def requests(self, questions: Sequence[ProbeQuestion]) -> list[Request]:
        """Return the requests, question by question and within it slot by slot."""
        return [
            self.measure.request(question, slot, self.k)
            for question in questions
            for slot in self.slots
        ]

    def values(self, questions: Sequence[ProbeQuestion], responses: Sequence[Response]) -> Scores:
        """Return the values, shape (len(questions), len(slots))."""
        asked = [question for question in questions for _ in self.slots]
        values = [*map(self.measure.value, asked, responses)]
        return np.array(values, np.float64).reshape(-1, len(self.slots))
