"""Measures of what was retrieved: of rankings, and of spans.

Those of rankings are trec_eval's, through ir-measures (MacAvaney et al., ECIR 2022). Those of spans
are RetriVex's (recall@k_span, share rescued by neighbours) and the coverage of a reference; all
compare positions in documents, so that chunks of any size and spans of any method are measured
alike: compare them at an equal token budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Scores

_OURS = {"hit": "Success", "MRR": "RR"}
"""Names in the papers -> names in trec_eval."""


def retrieval_measures(
    rankings: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Mapping[str, int]],
    measures: Sequence[str] = ("nDCG@10", "hit@1", "hit@10", "MRR"),
) -> dict[str, Scores]:
    """Measure rankings, question by question.

    Parameters
    ----------
    rankings
        Question to ids of passages, best first, each once.
    relevant
        Question to its judged passages: id to grade, 0 not relevant. Every question of `rankings`
        needs a relevant one; other questions are ignored.
    measures
        ``"hit@k"`` (1 if a relevant passage is among the first k), ``"MRR"`` (1 / rank of the
        first one), or a name that ir-measures knows, as ``"nDCG@10"``, ``"R@100"``, ``"P@5"``.

    Returns
    -------
    dict of str to ndarray
        By the names given; shape (n,), in [0, 1], higher is better, in the order of `rankings`.

    Raises
    ------
    ValueError
        If there is no such measure, a question has no relevant passage, or a ranking holds a
        passage twice.
    MissingExtraError
        If ir-measures is not installed.
    """
    library: Any = require("ir_measures", extra="eval")
    wanted = {name: _measure(library, name) for name in measures}
    for question, ranked in rankings.items():
        if not any(grade > 0 for grade in relevant.get(question, {}).values()):
            raise ValueError(f"question {question!r} has no relevant passage; leave it out")
        if len({*ranked}) < len(ranked):
            raise ValueError(f"the ranking of question {question!r} holds a passage twice")
    judged = {question: dict(relevant[question]) for question in rankings}
    # A question that is not in a run, since nothing was found for it, scores 0.
    run = {
        question: {passage: -rank for rank, passage in enumerate(ranked)}
        for question, ranked in rankings.items()
        if ranked
    }
    values = {measure: dict.fromkeys(rankings, 0.0) for measure in wanted.values()}
    for found in library.iter_calc([*values], judged, run):
        values[found.measure][found.query_id] = found.value
    return {
        name: np.array([*values[measure].values()], np.float64) for name, measure in wanted.items()
    }


def _measure(library: Any, name: str) -> Any:
    base, at, k = name.partition("@")
    try:
        if at and int(k) < 1:  # on which trec_eval's code aborts the process
            raise ValueError(f"k must be >= 1, got {k}")
        measure = library.parse_measure(f"{_OURS.get(base, base)}{at}{k}")
        measure.validate_params()
        return measure
    except (NameError, ValueError, SyntaxError, AssertionError) as error:
        raise ValueError(
            f"no retrieval measure {name!r}; there are hit@k, MRR, nDCG@k, P@k, R@k and the others "
            "of ir-measures"
        ) from error


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
