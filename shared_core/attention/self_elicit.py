"""SelfElicit: sentences that the model attends to are marked as evidence (Liu et al. 2025)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from shared_core.attention.answering import Case, PlacedAnswer, in_batches, second_round
from shared_core.attention.reading import AnswerAttention, answer_with_attention
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import LayerSet, RowSet, TokenSpan, document_scores
from shared_core.attention.sentences import CharSpan, mark_spans, sentence_spans
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import ANSWER, PromptTemplate

MARKS = ("<start_important>", "<end_important>")
"""The marks before and after evidence in the prompts of Liu et al."""


@dataclass(frozen=True, kw_only=True)
class ElicitedAnswer(PlacedAnswer):
    """An answer to documents whose evidence was marked; they keep their order.

    Attributes
    ----------
    evidence
        The sentences that were marked, by document, as intervals [start, end) of characters.
    """

    evidence: tuple[tuple[CharSpan, ...], ...]


@dataclass(frozen=True, kw_only=True)
class SelfElicit:
    """Marks the sentences that the model itself attends to as evidence, and answers again.

    A sentence is evidence if its mean attention from the first generated token in the upper layers
    is at least `alpha` times that of the sentence with the most, over all documents. The middle one
    of an odd number of layers is left out, as everywhere in this package.

    Attributes
    ----------
    alpha
        Share of the highest score, in (0, 1].
    marks
        The marks before and after a sentence of evidence. A line before the second prompt explains
        them, as in Liu et al., but in our own words.
    template
        The prompt.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """

    alpha: float = 0.5
    marks: tuple[str, str] = MARKS
    template: PromptTemplate = ANSWER
    rows: ClassVar[RowSet] = "first"
    layers: ClassVar[LayerSet] = "upper"

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must be in (0, 1], got {self.alpha}")

    def __call__(
        self, token_scores: npt.ArrayLike, sentences: Sequence[TokenSpan]
    ) -> tuple[int, ...]:
        """Return which sentences are evidence, ascending.

        Parameters
        ----------
        token_scores
            Scores of the prompt's tokens over these rows and layers, shape (n,).
        sentences
            Span of each sentence in the prompt, in tokens, as `RenderedPrompt.part` gives them.
            One without tokens, which is empty, is not evidence.

        Raises
        ------
        ValueError
            If a span leaves the prompt, or a score is not finite.
        """
        present = [number for number, (start, end) in enumerate(sentences) if start != end]
        scores = document_scores(token_scores, [sentences[number] for number in present])
        threshold = self.alpha * scores.max(initial=0.0)
        return tuple(
            number for number, score in zip(present, scores, strict=True) if score >= threshold
        )

    def run(
        self,
        model: HuggingFaceModel,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[ElicitedAnswer]:
        """Answer each case in two rounds; in one where there is no sentence to mark.

        The scores of each result are the mean attention to the documents, by the same rows and
        layers.

        Parameters
        ----------
        model
            A local model.
        cases
            What to answer.
        on_answer
            Called with the number of cases that a batch has brought to their final answer.

        Raises
        ------
        ValueError
            If a document is blank, or a prompt, with the marks in it or without, is longer than
            the model's context.
        GenerationError
            If the model's attention cannot be read.
        """
        return in_batches(self._answered, model, cases, on_answer)

    def _answered(self, model: HuggingFaceModel, cases: Sequence[Case]) -> list[ElicitedAnswer]:
        prompts = [
            render_prompt(model.encoder, self.template, case.documents, case.question)
            for case in cases
        ]
        readings = answer_with_attention(
            model, [prompt.ids for prompt in prompts], wanted=[(self.rows, self.layers)]
        )
        firsts = [
            self._elicited(case, prompt, reading)
            for case, prompt, reading in zip(cases, prompts, readings, strict=True)
        ]
        marked = {
            at: self._marked(case, first.evidence)
            for at, (case, first) in enumerate(zip(cases, firsts, strict=True))
            if any(first.evidence)
        }
        return second_round(model, firsts, marked)

    def _elicited(
        self, case: Case, prompt: RenderedPrompt, reading: AnswerAttention
    ) -> ElicitedAnswer:
        scores = reading.scores[self.rows, self.layers]
        sentences = [
            (document, span)
            for document, text in enumerate(case.documents)
            for span in sentence_spans(text)
        ]
        tokens = [prompt.part(document, *span) for document, span in sentences]
        evidence: list[list[CharSpan]] = [[] for _ in case.documents]
        for number in self(scores, tokens):
            document, span = sentences[number]
            evidence[document].append(span)
        return ElicitedAnswer(
            answer=reading.answer,
            first_answer=reading.answer,
            order=tuple(range(len(case.documents))),
            scores=tuple(document_scores(scores, prompt.contents).tolist()),
            rounds=1,
            evidence=tuple(map(tuple, evidence)),
        )

    def _marked(self, case: Case, evidence: Sequence[Sequence[CharSpan]]) -> str:
        documents = [
            mark_spans(text, spans, marks=self.marks)
            for text, spans in zip(case.documents, evidence, strict=True)
        ]
        before, behind = self.marks
        note = f"{before} and {behind} mark the important evidence in the context.\n\n"
        return note + self.template.render(documents, case.question)
