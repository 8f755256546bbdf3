"""One round: documents placed by the ranking they come with. The baselines of every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared_core.attention.answering import Case, PlacedAnswer
from shared_core.attention.rendering import render_prompt
from shared_core.generation.ask import ModelClient
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.models import Generator, as_generator
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.generation.tokens import PromptEncoder
from shared_core.placement import Placement, resolve_without_profile
from shared_core.placement.attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity.curve import PositionalCurve


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
            resolve_without_profile(self.placement)

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
            slots = resolve_without_profile(self.placement)(len(ranking))
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
            self.template.render([case.documents[at] for at in order], case.question)
            for case, order in zip(cases, orders, strict=True)
        ]
        return ask(model, prompts, on_answer=on_answer)


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


def scores_of(ranking: Sequence[int]) -> tuple[float, ...]:
    """Return scores that say no more than a ranking does, by document; see `PlacedAnswer`."""
    scores = {document: float(len(ranking) - rank) for rank, document in enumerate(ranking)}
    return tuple(scores[document] for document in range(len(ranking)))
