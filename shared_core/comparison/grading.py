"""How answers are graded: by one of the graders, or by a function of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from shared_core.comparison.questions import Question
from shared_core.evaluation.graders import (
    GRADERS,
    Grader,
    grade,
    grader_name,
    normalize_answer,
    resolve_grader,
)
from shared_core.generation.responses import Request, Response
from shared_core.sensitivity.measures import probability_of

LOGPROB = "logprob"
"""Stands alone in place of graders: outcomes are probabilities of the accepted answer."""

AnyGrader: TypeAlias = str | Grader
"""A name in `GRADERS`, or a function of answer and references."""


def name_of(grader: AnyGrader) -> str:
    """Return the name under which a grader's outcomes are reported.

    Raises
    ------
    ValueError
        If there is no grader of that name.
    """
    return LOGPROB if grader == LOGPROB else grader_name(grader)


def same_answer(a: str, b: str) -> bool:
    """Whether two answers are equal, ignoring case, articles and punctuation."""
    return normalize_answer(a) == normalize_answer(b)


@dataclass(frozen=True)
class Grading:
    """A grader, and what it has graded: no answer to a question is graded twice."""

    grader: AnyGrader
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
            by_keywords = self.grader in ("kw", GRADERS["kw"])
            references = (by_keywords and question.keywords) or question.answers
            self._graded[request] = grade(resolve_grader(self.grader), answer, references)
        return self._graded[request]
