"""Answers in one round and in two: documents placed by a known ranking, or by a first look.

"Place Good Documents in Good Positions", Algorithm 2: the attention of the first round's answer is
read; the second round answers again with the documents placed accordingly. Every baseline of the
paper that ranks by attention is another estimator and another placement of `TwoRound`; those of one
round are `OneRound`; `SelfElicit` and `RankGPT` are separate methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, TypeVar

from shared_core.arrays import Scores
from shared_core.attention.prompt import RenderedPrompt, render_prompt
from shared_core.attention.reading import (
    POSITIONAL,
    AnswerAttention,
    answer_with_attention,
    in_batches,
)
from shared_core.attention.relevance import (
    CONTENT_FREE,
    ESTIMATORS,
    Recorded,
    calibrated_scores,
    document_scores,
    ranking_of,
)
from shared_core.generation.ask import ModelClient
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.local_model import LocalModel
from shared_core.generation.models import Generator, as_generator
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.generation.tokens import PromptEncoder
from shared_core.placement import Placement, resolve_placement
from shared_core.placement.scored import ATTENTION_PLACEMENTS
from shared_core.sensitivity.curve import PositionalCurve


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question and the documents to answer it with, in the order of the first prompt."""

    question: str
    documents: Sequence[str]

    def prompt(self, template: PromptTemplate, order: Sequence[int]) -> str:
        """Return the prompt with the documents in an order, slot -> document."""
        return template.render([self.documents[at] for at in order], self.question)


@dataclass(frozen=True, kw_only=True)
class PlacedAnswer:
    """An answer, and how its documents were placed.

    Attributes
    ----------
    answer
        The final answer.
    first_answer
        That of the first round.
    order
        Slot -> document.
    scores
        Relevance of each document, by document; higher is better. For a method that only ranks
        them: n for the first of n, down to 1 for the last.
    rounds
        How often the model was asked; 1 where the first answer is the final one.
    """

    answer: str
    first_answer: str
    order: tuple[int, ...]
    scores: tuple[float, ...]
    rounds: int


A = TypeVar("A", bound=PlacedAnswer)


@dataclass(frozen=True, kw_only=True)
class OneRound:
    """Places documents by the ranking they come in, best first, and answers once.

    By default this is Vanilla (GoodPositions, section 5.1): the documents stay as they come. The
    paper's Default is ``"back_first"``, its reverse ``"front_first"``; its U-shaped Placement with
    an external ranking (Table 3) is ``"attention_u_shape"`` on a curve.

    Attributes
    ----------
    placement
        Name in `PLACEMENTS`, or a placement, that needs no position profile; with a curve, a name
        in `ATTENTION_PLACEMENTS`.
    curve
        What the model attends to by position. This takes a local model, since lengths are counted
        in its tokens.
    template
        The prompt.

    Raises
    ------
    ValueError
        If a placement is unknown, needs what is missing, or does not use the curve.
    """

    placement: str | Placement = "sequential"
    curve: PositionalCurve | None = None
    template: PromptTemplate = ANSWER

    def __post_init__(self) -> None:
        by_attention = self.placement in ATTENTION_PLACEMENTS
        if self.curve is not None and not by_attention:
            raise ValueError(
                f"placement {self.placement!r} does not use a curve; leave the curve out, or "
                f"use one of {', '.join(ATTENTION_PLACEMENTS)}"
            )
        if self.curve is None and by_attention:
            raise ValueError(
                f"placement {self.placement!r} needs to know what a model attends to by position: "
                "give a curve, or use TwoRound, which reads it"
            )
        if self.curve is None:
            resolve_placement(self.placement)(1)  # the check

    def run(
        self,
        model: object,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[PlacedAnswer]:
        """Answer each case in one round.

        Parameters
        ----------
        model
            A `Generator`, or what `as_generator` makes one of.
        cases
            What to answer, with the documents best first.
        on_answer
            Called with the number of cases that have just been answered.

        Raises
        ------
        ValueError
            If there is a curve, and the model is not a local one or a document has no token.
        TypeError
            If the model is not one of these.
        GenerationError
            If the model fails, or a prompt is longer than its context.
        """
        generator = as_generator(model)
        orders = [self.order(generator, case, range(len(case.documents))) for case in cases]
        answers = self.answers(generator, cases, orders, on_answer=on_answer)
        return [
            PlacedAnswer(
                answer=answer,
                first_answer=answer,
                order=order,
                scores=scores_of(range(len(order))),
                rounds=1,
            )
            for answer, order in zip(answers, orders, strict=True)
        ]

    def order(
        self, model: Generator | PromptEncoder, case: Case, ranking: Sequence[int]
    ) -> tuple[int, ...]:
        """Return slot -> document for documents in this ranking, best first.

        Of a local model its encoder is enough.

        Raises
        ------
        ValueError
            As `run`.
        """
        if self.curve is None:
            slots = resolve_placement(self.placement)(len(ranking))
            return tuple(ranking[rank] for rank in slots)
        encoder = model.encoder if isinstance(model, HuggingFaceModel) else model
        if not isinstance(encoder, PromptEncoder):
            raise ValueError(
                "a curve places by the tokens of a local model: give a HuggingFaceModel, got "
                f"{encoder.name!r}, a {type(encoder).__name__}"
            )
        lengths = render_prompt(encoder, self.template, case.documents, case.question).lengths
        place = ATTENTION_PLACEMENTS[str(self.placement)]
        return place(ranking, self.curve.scores_for(sum(lengths)), lengths)

    def answers(
        self,
        model: Generator,
        cases: Sequence[Case],
        orders: Sequence[Sequence[int]],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Return a model's answers to the documents in given orders, slot -> document."""
        prompts = [
            case.prompt(self.template, order) for case, order in zip(cases, orders, strict=True)
        ]
        return ask(model, prompts, on_answer=on_answer)


@dataclass(frozen=True, kw_only=True)
class TwoRound:
    """Places documents by what a model attends to, and answers again.

    Attributes
    ----------
    estimator
        Name in `ESTIMATORS`: what makes a document relevant.
    placement
        Name in `ATTENTION_PLACEMENTS`; or ``"back_first"``, the most relevant document next to the
        question, as Attention Sorting and ICR place.
    template
        The prompt.

    Raises
    ------
    ValueError
        If a name is unknown, or the estimator reads what the question's tokens attend to and the
        question comes before the documents.
    """

    estimator: str = "answer"
    placement: str = "attention_u_shape"
    template: PromptTemplate = ANSWER

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise ValueError(
                f"estimator must be one of {', '.join(ESTIMATORS)}, got {self.estimator!r}"
            )
        if self.placement not in (*ATTENTION_PLACEMENTS, "back_first"):
            raise ValueError(
                f"placement must be one of {', '.join(ATTENTION_PLACEMENTS)}, back_first, "
                f"got {self.placement!r}"
            )
        text = self.template.text
        reads_question = ESTIMATORS[self.estimator].rows == "query"
        if reads_question and text.rindex("{question}") < text.index("{context}"):
            raise ValueError(
                f"estimator {self.estimator!r} reads what the question's tokens attend to, and in "
                "this template they come before the documents, which they cannot see; put "
                "{question} after {context}, or use another estimator"
            )

    def run(
        self,
        model: HuggingFaceModel,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[PlacedAnswer]:
        """Answer each case in at most two rounds; the second only if a document moves.

        Parameters
        ----------
        model
            A local model.
        cases
            What to answer. A case of fewer than two documents takes one round.
        on_answer
            Called with the number of cases that a batch has brought to their final answer.

        Raises
        ------
        ValueError
            If a document is blank, or a prompt is longer than the model's context.
        GenerationError
            If the model's attention cannot be read.
        """

        def answer(batch: Sequence[Case]) -> list[PlacedAnswer]:
            firsts = self.first(model, batch)
            prompts = {
                at: case.prompt(self.template, first.order)
                for at, (case, first) in enumerate(zip(batch, firsts, strict=True))
                if list(first.order) != sorted(first.order)
            }
            return second_round(model, firsts, prompts)

        return in_batches(answer, cases, model, on_answer)

    def place(self, model: HuggingFaceModel, case: Case) -> PlacedAnswer:
        """Report the order that `first` does; the answer ends where it is no longer read.

        Where only the first token of the answer is read, and it is a special one, the last token of
        the prompt is read instead.

        Raises
        ------
        ValueError, GenerationError
            As `run`.
        """
        one = all(rows in ("query", "first") for rows, _ in self._wanted)
        return self.first(model, [case], max_new_tokens=1 if one else None)[0]

    def first(
        self, model: HuggingFaceModel, cases: Sequence[Case], *, max_new_tokens: int | None = None
    ) -> list[PlacedAnswer]:
        """Answer in one round, and report the order that the second would have.

        Parameters
        ----------
        model
            A local model.
        cases
            What to answer.
        max_new_tokens
            Most tokens of an answer; by default the limit of `model`.

        Raises
        ------
        ValueError, GenerationError
            As `run`.
        """
        prompts = [self._rendered(model, case, case.question) for case in cases]
        readings = answer_with_attention(
            model, prompts, wanted=self._wanted, max_new_tokens=max_new_tokens
        )
        relevance = self._relevance(model, cases, prompts, readings)
        return [
            self._placed(prompt, reading, scores)
            for prompt, reading, scores in zip(prompts, readings, relevance, strict=True)
        ]

    @property
    def _wanted(self) -> list[Recorded]:
        estimator = ESTIMATORS[self.estimator]
        positional = [POSITIONAL] if self.placement in ATTENTION_PLACEMENTS else []
        return [(estimator.rows, estimator.layers), *positional]

    def _rendered(self, model: HuggingFaceModel, case: Case, question: str) -> RenderedPrompt:
        return render_prompt(model.encoder, self.template, list(case.documents), question)

    def _relevance(
        self,
        model: HuggingFaceModel,
        cases: Sequence[Case],
        prompts: Sequence[RenderedPrompt],
        readings: Sequence[AnswerAttention],
    ) -> list[Scores]:
        wanted = self._wanted[0]
        asked = [reading.scores[wanted] for reading in readings]
        spans = [prompt.contents for prompt in prompts]
        if not ESTIMATORS[self.estimator].calibrated:
            return list(map(document_scores, asked, spans))
        empty = [self._rendered(model, case, CONTENT_FREE) for case in cases]
        unasked = answer_with_attention(model, empty, wanted=[wanted], max_new_tokens=1)
        others = [reading.scores[wanted] for reading in unasked]
        return list(
            map(calibrated_scores, asked, spans, others, [prompt.contents for prompt in empty])
        )

    def _placed(
        self, prompt: RenderedPrompt, reading: AnswerAttention, scores: Scores
    ) -> PlacedAnswer:
        ranking = ranking_of(scores)
        order = tuple(reversed(ranking))
        if self.placement in ATTENTION_PLACEMENTS:
            positional = reading.scores[POSITIONAL][slice(*prompt.region)]
            order = ATTENTION_PLACEMENTS[self.placement](ranking, positional, prompt.lengths)
        return PlacedAnswer(
            answer=reading.answer,
            first_answer=reading.answer,
            order=order,
            scores=tuple(scores.tolist()),
            rounds=1,
        )


class AttentionArguments(TypedDict, total=False):
    """Keyword arguments of `TwoRound`."""

    estimator: str
    placement: str
    template: PromptTemplate


@dataclass(frozen=True, kw_only=True)
class AttentionPlacer:
    """Places texts where a model attends to them, and says why: what both adapters are made of.

    Attributes
    ----------
    model
        The model.
    method
        How it places. With `OneRound` and its curve the model is not asked anything, and only its
        tokenizer is loaded: the texts are ranked as they come.
    """

    model: LocalModel
    method: OneRound | TwoRound

    def answer(self, cases: Sequence[Case]) -> list[PlacedAnswer]:
        """Answer as the method's `run` does with the model."""
        with self.model.alone() as model:
            return self.method.run(model, cases)

    def place(
        self, texts: Sequence[str], question: str | None
    ) -> list[tuple[int, dict[str, Any] | None]]:
        """Return slot by slot which text is there, and why; None where there is nothing to place.

        Raises
        ------
        ValueError
            If there is no question where the model is asked, a text is empty, or the prompt is
            longer than the model's context.
        GenerationError
            If the model cannot be loaded, or its attention cannot be read.
        """
        if len(texts) < 2:
            return [(at, None) for at in range(len(texts))]
        case = Case(question=question or "", documents=texts)
        if isinstance(self.method, OneRound):
            order = self.method.order(self.model.encoder, case, range(len(texts)))
            curve = self.method.curve
            shared = {"placement": self.method.placement, "curve": curve and curve.model}
            return [(at, {"rank": at, "slot": slot, **shared}) for slot, at in enumerate(order)]
        if question is None:
            raise ValueError(
                "which documents a model attends to depends on the question: give the query, or a "
                "curve to place by position alone"
            )
        with self.model.alone() as model:
            return [*self.slots(self.method.place(model, case))]

    def slots(self, found: PlacedAnswer) -> list[tuple[int, dict[str, Any]]]:
        """Return slot by slot which text `TwoRound` put there, and why: JSON-able."""
        ranks = {document: rank for rank, document in enumerate(ranking_of(found.scores))}
        assert isinstance(self.method, TwoRound)
        shared = {"placement": self.method.placement, "estimator": self.method.estimator}
        return [
            (at, {"rank": ranks[at], "slot": slot, "score": found.scores[at], **shared})
            for slot, at in enumerate(found.order)
        ]


def ask(
    model: Generator, prompts: Sequence[str], *, on_answer: Callable[[int], None] | None = None
) -> list[str]:
    """Return a model's answers, in order; equal prompts are sent once.

    Raises
    ------
    GenerationError
        If the model fails for good.
    """
    answers = ModelClient.of(model).answers([(prompt,) for prompt in prompts], on_answer=on_answer)
    return [str(answer) for answer in answers]


def second_round(
    model: HuggingFaceModel, firsts: Sequence[A], prompts: Mapping[int, str]
) -> list[A]:
    """Ask again where there is a second prompt; `prompts` are by index of `firsts`."""
    answers = dict(zip(prompts, model.generate([*prompts.values()]), strict=True))
    return [
        replace(first, answer=answers[at], rounds=2) if at in answers else first
        for at, first in enumerate(firsts)
    ]


def scores_of(ranking: Sequence[int]) -> tuple[float, ...]:
    """Return scores that say no more than a ranking does, by document; see `PlacedAnswer`."""
    scores = {document: float(len(ranking) - rank) for rank, document in enumerate(ranking)}
    return tuple(scores[document] for document in range(len(ranking)))
