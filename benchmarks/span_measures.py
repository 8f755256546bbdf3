"""Measures of spans: whether the characters that answer a question are in what was returned.

The measures are RetriVex's (recall@k_span, share rescued by neighbours) and the coverage of a
reference. All compare positions in documents, so that chunks of any size and spans of any method
are measured alike; compare them at an equal token budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Scores


@dataclass(frozen=True, slots=True)
class Extent:
    """A range of characters in a document.

    Attributes
    ----------
    document
        Id of the document.
    start, end
        Offsets in it: of the first character, and after the last one.

    Raises
    ------
    ValueError
        Unless ``0 <= start <= end``.
    """

    document: str
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(
                f"an extent must have 0 <= start <= end, got {self.start} and "
                f"{self.end} in {self.document!r}"
            )

    def holds(self, other: Extent) -> bool:
        """Return whether all of `other` lies in this one."""
        same = self.document == other.document
        return same and self.start <= other.start and other.end <= self.end


def span_recall(returned: Sequence[Sequence[Extent]], answers: Sequence[Extent]) -> Scores:
    """Return recall@k_span (RetriVex): 1 where one of the k spans holds all of the answer, else 0.

    Parameters
    ----------
    returned
        For each question its spans, best first; for a method without spans, its chunks.
    answers
        For each question the extent of its answer; not empty.

    Returns
    -------
    ndarray
        0 or 1 for each question, shape (n,). Two spans that hold a half each count as 0, even if
        they touch.

    Raises
    ------
    ValueError
        If the numbers of questions differ, or an answer is empty.
    """
    pairs = _checked(returned, answers)
    held = [any(span.holds(answer) for span in spans) for spans, answer in pairs]
    return np.array(held, np.float64)


def rescued_by_neighbour(
    returned: Sequence[Sequence[Extent]],
    seeds: Sequence[Sequence[Extent]],
    answers: Sequence[Extent],
) -> Scores:
    """Return 1 where a span holds all of the answer and no seed does (RetriVex), else 0.

    Its mean is a share of all questions: what `span_recall` gains over the same seeds alone. It
    does not show what the neighbours cost.

    Parameters
    ----------
    returned, answers
        As in `span_recall`.
    seeds
        For each question the retrieved chunks that `returned` came from.

    Raises
    ------
    ValueError
        As `span_recall`.
    """
    return span_recall(returned, answers) * (1 - span_recall(seeds, answers))


def reference_coverage(returned: Sequence[Sequence[Extent]], answers: Sequence[Extent]) -> Scores:
    """Return the share of the characters of each answer that is in what was returned.

    Parameters
    ----------
    returned, answers
        As in `span_recall`; spans that overlap count once.

    Returns
    -------
    ndarray
        In [0, 1] for each question, shape (n,), higher is better.

    Raises
    ------
    ValueError
        As `span_recall`.
    """
    pairs = _checked(returned, answers)
    return np.array([_covered(spans, answer) for spans, answer in pairs], np.float64)


def _checked(
    returned: Sequence[Sequence[Extent]], answers: Sequence[Extent]
) -> list[tuple[Sequence[Extent], Extent]]:
    if len(returned) != len(answers):
        raise ValueError(
            f"expected what was returned for each of {len(answers)} answers, got {len(returned)}"
        )
    for answer in answers:
        if answer.start == answer.end:
            raise ValueError(f"an answer has no characters: {answer}")
    return list(zip(returned, answers, strict=True))


def _covered(spans: Sequence[Extent], answer: Extent) -> float:
    covered, reached = 0, answer.start
    for span in sorted(spans, key=lambda span: span.start):
        if span.document == answer.document and span.end > reached:
            end = min(span.end, answer.end)
            covered += max(0, end - max(span.start, reached))
            reached = end
    return covered / (answer.end - answer.start)
