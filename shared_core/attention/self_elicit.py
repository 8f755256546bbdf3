"""SelfElicit: sentences that the model attends to are marked as evidence (Liu et al. 2025)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy.typing as npt

from shared_core.attention.prompt import CharSpan, RenderedPrompt, render_prompt
from shared_core.attention.reading import AnswerAttention, answer_with_attention, in_batches
from shared_core.attention.relevance import Recorded, TokenSpan, document_scores
from shared_core.attention.rounds import Case, PlacedAnswer, second_round
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import ANSWER, PromptTemplate

MARKS = ("<start_important>", "<end_important>")
"""The marks before and after evidence in the prompts of Liu et al."""

READ: Recorded = ("first", "upper")
"""The rows and layers in which evidence shows (GoodPositions, section 5.1)."""

_SENTENCE_END = re.compile(
    # the lookbehind: match only at the first of a run of stops, or long runs take forever
    r"(?<![.!?])[.!?]+[\"')\]\u2019\u201d]*(?=\s)"
    r"|[\u3002\uff01\uff1f]+[\u2019\u201d\u300d\u300f]*"
    r"|[\r\n]+|\Z"
)


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
    template
        The prompt. Before the second one a line explains `MARKS`, as in Liu et al., but in our own
        words.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """

    alpha: float = 0.5
    template: PromptTemplate = ANSWER

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must be in (0, 1], got {self.alpha}")

    def evidence(
        self, token_scores: npt.ArrayLike, sentences: Sequence[TokenSpan]
    ) -> tuple[int, ...]:
        """Return which sentences are evidence, ascending.

        Parameters
        ----------
        token_scores
            Scores of the prompt's tokens over the rows and layers `READ`, shape (n,).
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

        def answer(batch: Sequence[Case]) -> list[ElicitedAnswer]:
            prompts = [
                render_prompt(model.encoder, self.template, case.documents, case.question)
                for case in batch
            ]
            readings = answer_with_attention(model, prompts, wanted=[READ])
            firsts = list(map(self._elicited, batch, prompts, readings))
            marked = {
                at: self._marked(case, first.evidence)
                for at, (case, first) in enumerate(zip(batch, firsts, strict=True))
                if any(first.evidence)
            }
            return second_round(model, firsts, marked)

        return in_batches(answer, cases, model, on_answer)

    def _elicited(
        self, case: Case, prompt: RenderedPrompt, reading: AnswerAttention
    ) -> ElicitedAnswer:
        scores = reading.scores[READ]
        sentences = [
            (document, span)
            for document, text in enumerate(case.documents)
            for span in sentence_spans(text)
        ]
        tokens = [prompt.part(document, *span) for document, span in sentences]
        evidence: list[list[CharSpan]] = [[] for _ in case.documents]
        for number in self.evidence(scores, tokens):
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
        documents = list(map(mark_spans, case.documents, evidence))
        before, behind = MARKS
        note = f"{before} and {behind} mark the important evidence in the context.\n\n"
        return note + self.template.render(documents, case.question)


def sentence_spans(text: str) -> list[CharSpan]:
    """Return the sentences of a text as intervals of characters, without surrounding space.

    A sentence ends at a line break, after a full stop, question or exclamation mark followed by
    space, and after a CJK one. An abbreviation ends one too early, which only makes the evidence
    finer.
    """
    spans, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        part = text[start : end.end()]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            spans.append((begin, start + len(part.rstrip())))
        start = end.end()
    return spans


def mark_spans(text: str, spans: Sequence[CharSpan]) -> str:
    """Return a text with `MARKS` around some intervals of characters, ascending and disjoint."""
    before, behind = MARKS
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], before, text[start:end], behind]
        at = end
    return "".join([*pieces, text[at:]])
