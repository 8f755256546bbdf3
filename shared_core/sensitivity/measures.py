"""What a probe measures: how a question with a passage in each slot is asked and scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import numpy as np

from shared_core.arrays import Scores
from shared_core.evaluation.graders import Grader, grade
from shared_core.evaluation.paired_differences import complete_cases
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.models import Generator, ScoringModel
from shared_core.generation.responses import Failed, check_failed
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


@dataclass(kw_only=True)
class Rotation:
    """One model, one measure: every question with its passage in every slot; and what came of it.

    Attributes
    ----------
    measure, client
        What is asked for, and through what.
    questions
        All that may be asked.
    slots, k
        Slots that a passage takes, of how many.
    max_failed
        Share of the questions that the model may fail on, in [0, 1).
    values
        Those of the questions that were answered so far, shape (n, len(slots)).
    reasons
        Number of a question that the model failed on -> why.
    empty
        How many answers to the others are empty.
    """

    measure: Measure
    client: ModelClient
    questions: Sequence[ProbeQuestion]
    slots: tuple[int, ...]
    k: int
    max_failed: float
    reasons: dict[int, str] = field(default_factory=dict, init=False)
    empty: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.values: Scores = np.empty((0, len(self.slots)))

    def requests(self, start: int = 0, end: int | None = None) -> list[Request]:
        """Return those of the questions [start, end), one by one and within each slot by slot."""
        return [
            self.measure.request(question, slot, self.k)
            for question in self.questions[start:end]
            for slot in self.slots
        ]

    def check_prompts(self) -> None:
        """Refuse prompts that a local model cannot read, by their question."""
        model = self.client.model
        if not isinstance(model, HuggingFaceModel):
            return
        for at, question in enumerate(self.questions):
            prompts, *continuations = zip(*self.requests(at, at + 1), strict=True)
            try:
                model.check_prompts(prompts, *continuations)
            except ValueError as error:
                raise ValueError(f"question {question.question!r}: {error}") from error

    def ask(
        self,
        start: int,
        end: int,
        *,
        on_answer: Callable[[int], None] | None,
        on_wait: Callable[[str], None] | None,
    ) -> None:
        """Ask the questions [start, end)."""
        requests, width = self.requests(start, end), len(self.slots)
        number_of = {each: start + at // width for at, each in enumerate(requests)}

        def note(request: Request, failed: Failed) -> None:
            self.reasons.setdefault(number_of[request], failed.reason)
            where = f"model {self.client.model.name!r}"
            check_failed([*self.reasons.values()], len(self.questions), self.max_failed, where)

        found = self.client.answers_or_failures(
            requests, on_failure=note, on_answer=on_answer, on_wait=on_wait
        )
        answered = [found[request] for request in requests]
        rows = (answered[at : at + width] for at in range(0, len(answered), width))
        kept: dict[int, tuple[Response, ...]] = complete_cases(rows)
        responses = [(self.questions[start + at], each) for at, row in kept.items() for each in row]
        values = [self.measure.value(question, each) for question, each in responses]
        self.values = np.append(self.values, np.reshape(values, (-1, width)), axis=0)
        self.empty += sum(isinstance(each, str) and not each.strip() for _, each in responses)
