"""Two rounds on a local model: find where it looks, then put good documents in good positions.

"Place Good Documents in Good Positions", Algorithm 2. The attention of the first round's answer is
read; the second round answers again with the documents placed accordingly. Every baseline of the
paper that ranks by attention is another `estimator` and another `placement`; `SelfElicit`,
`RankGPT` and `OneRound` are separate methods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared_core.arrays import Scores
from shared_core.attention.answering import Case, PlacedAnswer, in_batches, second_round
from shared_core.attention.estimators import (
    CONTENT_FREE,
    ESTIMATORS,
    Calibration,
    Estimator,
    ranking_of,
)
from shared_core.attention.reading import (
    POSITIONAL,
    AnswerAttention,
    Recorded,
    answer_with_attention,
    attention_of_answer,
)
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.placement.by_attention import ATTENTION_PLACEMENTS

RELEVANT_LAST = "relevant_last"


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
        if self.placement not in (*ATTENTION_PLACEMENTS, RELEVANT_LAST):
            raise ValueError(
                f"placement must be one of {', '.join(ATTENTION_PLACEMENTS)}, {RELEVANT_LAST}, "
                f"got {self.placement!r}"
            )
        text = self.template.text
        if self._reads_question and text.index("{question}") < text.index("{context}"):
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
            If a document is blank, a question is blank where the estimator reads its tokens, or a
            prompt is longer than the model's context.
        GenerationError
            If the model's attention cannot be read.
        """
        return in_batches(self._answered, model, cases, on_answer)

    def place(self, model: HuggingFaceModel, case: Case) -> PlacedAnswer:
        """Report the order that `first` does; the answer ends where it is no longer read.

        Raises
        ------
        ValueError, GenerationError
            As `run`.
        """
        if not self._reads_beginning:
            return self.first(model, [case])[0]
        (found,) = self.first(model, [case], max_new_tokens=1)
        if self._reads_question or found.answer:
            return found
        # a special token, behind which the first one of the answer itself may come
        return self.first(model, [case])[0]

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
        prompts = [self._rendered(model, case) for case in cases]
        spans = [prompt.question for prompt in prompts] if self._reads_question else None
        for case, (start, end) in zip(cases, spans or (), strict=False):
            if start == end or not case.question.strip():
                raise ValueError(
                    f"estimator {self.estimator!r} reads what the question's tokens attend to, but "
                    f"the question is {case.question!r}; give one, or use another estimator"
                )
        readings = answer_with_attention(
            model,
            [prompt.ids for prompt in prompts],
            query_spans=spans,
            max_new_tokens=max_new_tokens,
            wanted=self._wanted,
        )
        return [
            self._placed(model, case, prompt, reading)
            for case, prompt, reading in zip(cases, prompts, readings, strict=True)
        ]

    def _answered(self, model: HuggingFaceModel, cases: Sequence[Case]) -> list[PlacedAnswer]:
        firsts = self.first(model, cases)
        prompts = {
            at: self.template.render(
                [case.documents[document] for document in first.order], case.question
            )
            for at, (case, first) in enumerate(zip(cases, firsts, strict=True))
            if list(first.order) != sorted(first.order)
        }
        return second_round(model, firsts, prompts)

    @property
    def _reads_question(self) -> bool:
        return ESTIMATORS[self.estimator].rows == "query"

    @property
    def _reads_beginning(self) -> bool:
        """Whether no row is read that comes after the first token of the answer."""
        return all(rows in ("query", "first") for rows, _ in self._wanted)

    @property
    def _wanted(self) -> list[Recorded]:
        estimator = ESTIMATORS[self.estimator]
        positional = [] if self.placement == RELEVANT_LAST else [POSITIONAL]
        return [(estimator.rows, estimator.layers), *positional]

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
            order = place(ranking, reading.scores[POSITIONAL][start:end], prompt.lengths)
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
            unasked = attention_of_answer(
                model, empty.ids, [], query_span=empty.question, wanted=[where]
            )
            calibration = Calibration(token_scores=unasked.scores[where], spans=empty.contents)
        return estimator(reading.scores[where], prompt.contents, calibration)
