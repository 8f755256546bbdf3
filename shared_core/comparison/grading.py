"""How answers are graded: by one of the graders, or by a judge that also reads the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from shared_core.comparison.questions import Question
from shared_core.evaluation.graders import (
    GRADERS,
    Grader,
    checked_score,
    grade,
    grader_name,
    normalize_answer,
    resolve_grader,
)
from shared_core.generation.fingerprint import fingerprint_of, source_of
from shared_core.generation.journal import Journal
from shared_core.generation.responses import Request, Response
from shared_core.sensitivity.measures import probability_of

JudgeFunction: TypeAlias = Callable[[str, Sequence[str], str], float]
"""(question, accepted answers, answer) -> score in [0, 1], higher is better."""


@dataclass(frozen=True)
class Judge:
    """A function that grades answers and is expensive to call, such as a language model.

    Nothing is judged twice, and its scores are kept in the journal, if there is one. It judges the
    first answer as soon as that is there, so that a judge that fails costs little.

    Attributes
    ----------
    function
        (question, accepted answers, answer) to a score in [0, 1].
    name
        Under which its scores are reported and kept.
    """

    function: JudgeFunction
    name: str = "judge"

    @cached_property
    def fingerprint(self) -> str:
        """Name, and a hash of what `source_of` reads: a changed function judges again."""
        return fingerprint_of(self.name, source_of(self.function))


LOGPROB = "logprob"
"""Stands alone in place of graders: outcomes are probabilities of the accepted answer."""

AnyGrader: TypeAlias = str | Grader | Judge
"""A name in `GRADERS`, a function of answer and references, or a judge."""


def name_of(grader: AnyGrader) -> str:
    """Return the name under which a grader's outcomes are reported.

    Raises
    ------
    ValueError
        If there is no grader of that name.
    """
    if grader == LOGPROB:
        return LOGPROB
    return grader.name if isinstance(grader, Judge) else grader_name(grader)


def same_answer(a: str, b: str) -> bool:
    """Whether two answers are equal, ignoring case, articles and punctuation."""
    return normalize_answer(a) == normalize_answer(b)


@dataclass(frozen=True)
class Grading:
    """A grader, and what it has graded: no answer to a question is graded twice.

    Attributes
    ----------
    grader
        What grades.
    journal
        Where a judge's scores are kept.
    """

    grader: AnyGrader
    journal: Journal | None
    _graded: dict[Request, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the grader."""
        return name_of(self.grader)

    def check(self, questions: Sequence[Question]) -> None:
        """Raise ValueError if one of `GRADERS` cannot use the references of a question.

        No other grader is asked: it may be expensive, or a language model.
        """
        if self.grader in (*GRADERS, *GRADERS.values()):
            for question in questions:
                self(question, "")

    def __call__(self, question: Question, response: Response) -> float:
        """Return how right an answer is, in [0, 1]; of log-probabilities, how probable it is.

        Raises
        ------
        ValueError
            If the score is not a number in [0, 1], or the grader cannot use a reference.
        """
        if not isinstance(response, str):
            return probability_of(response)
        answer = response
        request: Request = (question.question, *question.answers, *question.keywords, answer)
        if request not in self._graded:
            if isinstance(self.grader, Judge):
                self._graded[request] = self._judged(self.grader, question, answer)
            else:
                by_keywords = self.grader in ("kw", GRADERS["kw"])
                references = (by_keywords and question.keywords) or question.answers
                self._graded[request] = grade(resolve_grader(self.grader), answer, references)
        return self._graded[request]

    def _judged(self, judge: Judge, question: Question, answer: str) -> float:
        request: Request = (question.question, *question.answers, answer)
        kept = None if self.journal is None else self.journal.get(judge.fingerprint, request)
        if isinstance(kept, list):
            return kept[0]
        returned = judge.function(question.question, question.answers, answer)
        score = checked_score(returned, f"judge {judge.name!r}")
        if self.journal is not None:
            self.journal.add(judge.fingerprint, request, [score])
        return score
