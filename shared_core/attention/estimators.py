"""How relevant a model finds each document: the estimators of GoodPositions and its baselines.

An estimator of `ESTIMATORS` turns token scores (eq. 1) of a prompt into document scores, and
says over which rows and layers they must have been averaged. `SelfElicit` marks sentences instead,
and `rankgpt_prompt` asks the model in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.attention.scores import (
    LayerSet,
    RowSet,
    Span,
    checked_scores,
    document_scores,
    parts_of,
)

CONTENT_FREE = "N/A"
"""The question that asks nothing (Chen et al. 2024), which shows attention by position alone."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What the same documents are attended to without a question.

    Attributes
    ----------
    token_scores
        Scores of the tokens of the prompt whose question is `CONTENT_FREE`, shape (n,).
    spans
        Content span of each document in that prompt, in the same order.
    """

    token_scores: npt.ArrayLike
    spans: Sequence[Span]


class Estimator:
    """A rule that makes document scores of token scores; higher is more relevant.

    Subclasses set `rows` and `layers`, over which the token scores must have been averaged, and
    `calibrated` if they need a `Calibration`. As it stands it averages over a document's tokens.
    """

    rows: ClassVar[RowSet]
    layers: ClassVar[LayerSet]
    calibrated: ClassVar[bool] = False

    def __call__(
        self,
        token_scores: npt.ArrayLike,
        spans: Sequence[Span],
        calibration: Calibration | None = None,
    ) -> Scores:
        """Return one score a document, in the order of the spans (eq. 2).

        Parameters
        ----------
        token_scores
            Scores of the prompt's tokens over this estimator's rows and layers, shape (n,).
        spans
            Content span of each document in the prompt, [start, end) in tokens, not empty.
        calibration
            For an estimator that is `calibrated`, and only for such a one.

        Raises
        ------
        ValueError
            If a span is empty or leaves the prompt, a score is not finite, or the calibration is
            missing, unasked for or of other documents.
        """
        if calibration is not None:
            raise ValueError(f"{type(self).__name__} is not calibrated: leave calibration out")
        return document_scores(token_scores, spans)


@dataclass(frozen=True)
class AnswerTokens(Estimator):
    """Mean attention of all answer tokens in the upper layers (GoodPositions, S_{y, L_h})."""

    rows = "answer"
    layers = "upper"


@dataclass(frozen=True)
class FirstToken(Estimator):
    """Attention Sorting: mean attention of the first generated token in all layers.

    Peysakhovich & Lerer 2023, one pass of it, as GoodPositions compares (section 5.1).
    """

    rows = "first"
    layers = "all"


@dataclass(frozen=True)
class CalibratedQuery(Estimator):
    """ICR: attention of the question's tokens in all layers, less that of an empty question.

    In-context re-ranking, Chen et al. 2024. From each token's score its score under a
    content-free question is subtracted; within each document, tokens whose difference is more
    than two standard deviations (of the population) below the mean are dropped; the others are
    summed, so a long document can gain more. Scores are means over heads and layers where the
    paper sums, which scales them all alike.
    """

    rows = "query"
    layers = "all"
    calibrated = True

    def __call__(
        self,
        token_scores: npt.ArrayLike,
        spans: Sequence[Span],
        calibration: Calibration | None = None,
    ) -> Scores:
        """Return the sum of each document's calibrated token scores without the outliers."""
        if calibration is None:
            raise ValueError(
                "CalibratedQuery subtracts what a content-free question attends to: give as "
                f"calibration the scores of the prompt that asks {CONTENT_FREE!r}"
            )
        asked = parts_of(token_scores, spans)
        unasked = parts_of(calibration.token_scores, calibration.spans)
        lengths, others = ([len(part) for part in parts] for parts in (asked, unasked))
        if lengths != others:
            raise ValueError(
                f"the calibration is of documents of {others} tokens, these have {lengths}; "
                "render the same documents in the same order"
            )
        differences = (one - other for one, other in zip(asked, unasked, strict=True))
        return np.array([_sum_without_outliers(each) for each in differences], np.float64)


_SENTENCE_END = re.compile(
    # the lookbehind: only at the first of a row of stops, or long rows take for ever
    r"(?<![.!?])[.!?]+[\"')\]\u2019\u201d]*(?=\s)"
    r"|[\u3002\uff01\uff1f]+[\u2019\u201d\u300d\u300f]*"
    r"|[\r\n]+|\Z"
)

ESTIMATORS: dict[str, type[Estimator]] = {
    "answer": AnswerTokens,
    "attention_sorting": FirstToken,
    "icr": CalibratedQuery,
}


def _sum_without_outliers(scores: Scores) -> float:
    # not below, rather than above: equal scores deviate by nothing, and all of them count
    return float(scores[scores >= scores.mean() - 2 * scores.std()].sum())


def ranking_of(scores: npt.ArrayLike) -> tuple[int, ...]:
    """Return documents by decreasing score; equal ones stay in order.

    Raises
    ------
    ValueError
        If a score is not finite.
    """
    return tuple(np.argsort(-checked_scores(scores), kind="stable").tolist())


@dataclass(frozen=True, kw_only=True)
class SelfElicit:
    """The sentences that the model itself attends to as evidence (Liu et al. 2025).

    A sentence is evidence if its mean attention from the first generated token in the upper
    layers is at least `alpha` times that of the sentence with the most, over all documents. The
    middle one of an odd number of layers is left out, as everywhere here.

    Attributes
    ----------
    alpha
        Share of the highest score, in (0, 1].
    """

    alpha: float = 0.5
    rows: ClassVar[RowSet] = "first"
    layers: ClassVar[LayerSet] = "upper"

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must be in (0, 1], got {self.alpha}")

    def __call__(self, token_scores: npt.ArrayLike, sentences: Sequence[Span]) -> tuple[int, ...]:
        """Return which sentences are evidence, ascending.

        Parameters
        ----------
        token_scores
            Scores of the prompt's tokens over these rows and layers, shape (n,).
        sentences
            Span of each sentence in the prompt, in tokens, as `RenderedPrompt.part` gives them.
            One without tokens, which is empty, is no evidence.

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


def sentence_spans(text: str) -> list[Span]:
    """Return the sentences of a text as intervals of characters, without the space around them.

    A sentence ends at a line break, behind a full stop, question or exclamation mark that space
    follows, and behind a CJK one. An abbreviation ends one too early, which only makes the
    evidence finer.
    """
    spans, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        part = text[start : end.end()]
        if part.strip():
            begin = start + len(part) - len(part.lstrip())
            spans.append((begin, start + len(part.rstrip())))
        start = end.end()
    return spans


def mark_spans(text: str, spans: Sequence[Span], *, marks: tuple[str, str] = ("**", "**")) -> str:
    """Return a text with a mark before and behind each of some parts.

    Parameters
    ----------
    text
        Text of a document.
    spans
        Intervals of characters, ascending and apart.
    marks
        What stands before and behind. Liu et al. write ``<start_important>`` and
        ``<end_important>``, which their prompt explains to the model.

    Raises
    ------
    ValueError
        If a part is not within the text, or not behind the one before it.
    """
    before, behind = marks
    pieces, at = [], 0
    for start, end in spans:
        if not at <= start <= end <= len(text):
            raise ValueError(
                f"spans must ascend within the {len(text)} characters, got [{start}, {end}) "
                f"after {at}"
            )
        pieces += [text[at:start], before, text[start:end], behind]
        at = end
    return "".join([*pieces, text[at:]])


def rankgpt_prompt(question: str, passages: Sequence[str]) -> str:
    """Return the prompt that asks a model for a ranking of passages.

    RankGPT, Sun et al. 2023, in the words of GoodPositions, appendix F. The appendix prints ``<``
    between the identifiers; here stands ``>``, as in RankGPT, since the best come first.
    """
    number = len(passages)
    listed = "\n\n".join(f"[{at}] {passage}" for at, passage in enumerate(passages, start=1))
    return (
        "This is RankGPT, an intelligent assistant that can rank passages based on their "
        "relevancy to the query.\n\n"
        f"The following are {number} passages, each indicated by number identifier []. I can rank "
        f"them based on their relevance to query: {question}\n\n"
        f"{listed}\n\n"
        f"The search query is: {question}\n\n"
        f"I will rank the {number} passages above based on their relevance to the search query. "
        "The passages will be listed in descending order using identifiers, and the most relevant "
        "passages should be listed first, and the output format should be [] > [] > etc, e.g., "
        "[1] > [2] > etc.\n\n"
        f"The ranking results of the {number} passages (only identifiers) is:"
    )


def parse_permutation(answer: str, n: int) -> tuple[int, ...]:
    """Return the ranking that a model's answer names, best first; always a permutation of 0..n-1.

    Identifiers are read in their order, whatever stands between them: those in brackets, such as
    ``[2] > [1]`` or ``[2, 1]``, or without any brackets numbers that ``>`` or ``<`` joins. Of a
    repeated one the first mention counts, one that is out of range is skipped, and passages that
    are not named follow in their order.

    Parameters
    ----------
    answer
        What the model wrote after `rankgpt_prompt`.
    n
        Number of passages, >= 0.

    Raises
    ------
    ValueError
        If `n` is negative.
    """
    if n < 0:
        raise ValueError(f"n must be >= 0, got {n}")
    lists = re.findall(r"\[[0-9,;\s]*\]", answer)
    if not any(re.search("[0-9]", each) for each in lists):
        lists = re.findall(r"[0-9]+(?:\s*[<>]\s*[0-9]+)+", answer)
    passages = {str(identifier): identifier - 1 for identifier in range(1, n + 1)}
    named = [passages[each] for each in re.findall("[0-9]+", " ".join(lists)) if each in passages]
    return tuple(dict.fromkeys([*named, *range(n)]))
