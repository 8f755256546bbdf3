"""Two rounds on a local model: see where it looks, then put good documents in good positions.

"Put Good Documents in Good Positions", Algorithm 2. The first round answers and is read; the
second answers again with the documents placed by what was read. Every baseline of the paper that
reads attention is another `estimator` and another `placement`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared_core.arrays import Scores
from shared_core.attention.estimators import (
    CONTENT_FREE,
    ESTIMATORS,
    Calibration,
    Estimator,
    ranking_of,
)
from shared_core.attention.reading import (
    AnswerAttention,
    answer_with_attention,
    attention_of_answer,
)
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.placement.attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity.templates import ANSWER, PromptTemplate

RELEVANT_LAST = "relevant_last"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question and the documents to answer it with, in the order of the first prompt."""

    question: str
    documents: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class PlacedAnswer:
    """An answer, and how its documents came to stand where they did.

    Attributes
    ----------
    answer
        The final answer.
    first_answer
        That of the first round.
    order
        Slot -> document.
    scores
        Relevance of each document in the eyes of the model, by document; higher is better.
    rounds
        1 where the documents stood in their best order already, else 2.
    """

    answer: str
    first_answer: str
    order: tuple[int, ...]
    scores: tuple[float, ...]
    rounds: int


@dataclass(frozen=True, kw_only=True)
class TwoRound:
    """Places documents by what a model attends to, and answers again.

    Attributes
    ----------
    estimator
        Name in `ESTIMATORS`: what makes a document relevant.
    placement
        Name in `ATTENTION_PLACEMENTS`; or ``"relevant_last"``, the most relevant document next to
        the question, as Attention Sorting and ICR place.
    template
        The prompt.

    Raises
    ------
    ValueError
        If a name is unknown.
    """

    estimator: str = "answer"
    placement: str = "attention_u_shape"
    template: PromptTemplate = ANSWER

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise ValueError(
                f"estimator must be one of {', '.join(ESTIMATORS)}, got {self.estimator!r}"
            )
        if self.placement not in (*ATTENTION_PLACEMENTS, RELEVANT_LAST):
            raise ValueError(
                f"placement must be one of {', '.join(ATTENTION_PLACEMENTS)}, {RELEVANT_LAST}, "
                f"got {self.placement!r}"
            )

    def run(
        self,
        model: HuggingFaceModel,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[PlacedAnswer]:
        """Answer each case in at most two rounds.

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
        found: list[PlacedAnswer] = []
        for start in range(0, len(cases), model.batch_size):
            batch = cases[start : start + model.batch_size]
            found += self._second(model, batch, self.first(model, batch))
            if on_answer is not None:
                on_answer(len(batch))
        return found

    def first(self, model: HuggingFaceModel, cases: Sequence[Case]) -> list[PlacedAnswer]:
        """Answer in one round, and tell the order that the second would have."""
        prompts = [self._rendered(model, case) for case in cases]
        spans = [prompt.question for prompt in prompts] if self._reads_question else None
        readings = answer_with_attention(
            model, [prompt.ids for prompt in prompts], query_spans=spans
        )
        return [
            self._placed(model, case, prompt, reading)
            for case, prompt, reading in zip(cases, prompts, readings, strict=True)
        ]

    def _second(
        self, model: HuggingFaceModel, cases: Sequence[Case], firsts: Sequence[PlacedAnswer]
    ) -> list[PlacedAnswer]:
        moved = [at for at, first in enumerate(firsts) if list(first.order) != sorted(first.order)]
        prompts = [
            self.template.render(
                [cases[at].documents[document] for document in firsts[at].order],
                cases[at].question,
            )
            for at in moved
        ]
        answers = dict(zip(moved, model.generate(prompts), strict=True))
        return [
            first if at not in answers else _again(first, answers[at])
            for at, first in enumerate(firsts)
        ]

    @property
    def _reads_question(self) -> bool:
        return ESTIMATORS[self.estimator].rows == "query"

    def _rendered(
        self, model: HuggingFaceModel, case: Case, question: str | None = None
    ) -> RenderedPrompt:
        asked = case.question if question is None else question
        return render_prompt(model.encoder, self.template, list(case.documents), asked)

    def _placed(
        self,
        model: HuggingFaceModel,
        case: Case,
        prompt: RenderedPrompt,
        reading: AnswerAttention,
    ) -> PlacedAnswer:
        scores: Scores = self._relevance(model, case, prompt, reading)
        start, end = prompt.region
        ranking = ranking_of(scores)
        order = tuple(reversed(ranking))
        if self.placement != RELEVANT_LAST:
            place = ATTENTION_PLACEMENTS[self.placement]
            order = place(ranking, reading.scores["edges", "lower"][start:end], prompt.lengths)
        return PlacedAnswer(
            answer=reading.answer,
            first_answer=reading.answer,
            order=order,
            scores=tuple(scores.tolist()),
            rounds=1,
        )

    def _relevance(
        self,
        model: HuggingFaceModel,
        case: Case,
        prompt: RenderedPrompt,
        reading: AnswerAttention,
    ) -> Scores:
        estimator: Estimator = ESTIMATORS[self.estimator]()
        where = estimator.rows, estimator.layers
        calibration = None
        if estimator.calibrated:
            empty = self._rendered(model, case, CONTENT_FREE)
            unasked = attention_of_answer(model, empty.ids, [], query_span=empty.question)
            calibration = Calibration(token_scores=unasked.scores[where], spans=empty.contents)
        return estimator(reading.scores[where], prompt.contents, calibration)


def _again(first: PlacedAnswer, answer: str) -> PlacedAnswer:
    return PlacedAnswer(
        answer=answer,
        first_answer=first.answer,
        order=first.order,
        scores=first.scores,
        rounds=2,
    )
