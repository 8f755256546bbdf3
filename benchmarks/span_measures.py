"""Measures of retrieved spans: RetriVex's, and the coverage of a reference.

All compare positions in documents, so that chunks of any size and spans of any method are measured
alike: compare them at an equal token budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Scores


@dataclass(frozen=True, slots=True)
class Extent:
    """A range of characters in a document: from `start` to before `end`."""

    document: str
    start: int
    end: int

    def holds(self, other: Extent) -> bool:
        """Return whether all of `other` lies in this one."""
        same = self.document == other.document
        return same and self.start <= other.start and other.end <= self.end


def span_recall(returned: Sequence[Sequence[Extent]], answers: Sequence[Extent]) -> Scores:
    """Return recall@k_span (RetriVex): 1 where one of the k spans holds all of the answer, else 0.

    Two spans that hold a half each count as 0, even if they touch. Shape (n,), by question;
    for a method without spans, `returned` are its chunks.
    """
    pairs = zip(returned, answers, strict=True)
    held = [any(span.holds(answer) for span in spans) for spans, answer in pairs]
    return np.array(held, np.float64)


def rescued_by_neighbour(
    returned: Sequence[Sequence[Extent]],
    seeds: Sequence[Sequence[Extent]],
    answers: Sequence[Extent],
) -> Scores:
    """Return 1 where a span holds all of the answer and no seed does (RetriVex), else 0.

    Its mean is a share of all questions: what `span_recall` gains over the same seeds alone. It
    does not show what the neighbours cost. `seeds` are the retrieved chunks that `returned` came
    from.
    """
    return span_recall(returned, answers) * (1 - span_recall(seeds, answers))


def reference_coverage(returned: Sequence[Sequence[Extent]], answers: Sequence[Extent]) -> Scores:
    """Return the share of the characters of each answer that is in what was returned, shape (n,).

    Spans that overlap count once.
    """
    pairs = zip(returned, answers, strict=True)
    return np.array([_covered(spans, answer) for spans, answer in pairs], np.float64)


def _covered(spans: Sequence[Extent], answer: Extent) -> float:
    covered, reached = 0, answer.start
    for span in sorted(spans, key=lambda span: span.start):
        if span.document == answer.document and span.end > reached:
            end = min(span.end, answer.end)
            covered += max(0, end - max(span.start, reached))
            reached = end
    return covered / (answer.end - answer.start)
