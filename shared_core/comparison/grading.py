"""How answers are graded: by one of the graders, or by a judge that also reads the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from shared_core.comparison.questions import ComparedQuestion
from shared_core.evaluation.graders import (
    GRADERS,
    Grader,
    checked_score,
    grade,
    grader_name,
    resolve_grader,
)
from shared_core.generation.checking import Request
from shared_core.generation.identity import identity_of, source_of
from shared_core.generation.journal import Journal

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
    def identity(self) -> str:
        """Name, and a hash of what `source_of` reads: a changed function judges again."""
        return identity_of(self.name, source_of(self.function))


AnyGrader: TypeAlias = str | Grader | Judge
"""A name in `GRADERS`, a function of answer and references, or a judge."""


def name_of(grader: AnyGrader) -> str:
    """Return the name under which a grader's outcomes are reported.

    Raises
    ------
    ValueError
        If there is no grader of that name.
    """
    return grader.name if isinstance(grader, Judge) else grader_name(grader)


@dataclass(frozen=True)
class Grading:
    """A grader, and what it has judged.

    Attributes
    ----------
    grader
        What grades.
    journal
        Where a judge's scores are kept.
    """

    grader: AnyGrader
    journal: Journal | None
    _judged: dict[Request, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """Name of the grader."""
        return name_of(self.grader)

    def check(self, questions: Sequence[ComparedQuestion]) -> None:
        """Raise ValueError if the grader cannot use the references of a question.

        A judge is not asked: it is expensive, and an empty answer is of no interest to it.
        """
        if not isinstance(self.grader, Judge):
            for question in questions:
                self(question, "")

    def __call__(self, question: ComparedQuestion, answer: str) -> float:
        """Return how right an answer is, in [0, 1].

        Raises
        ------
        ValueError
            If the score is not a number in [0, 1], or the grader cannot use a reference.
        """
        if isinstance(self.grader, Judge):
            request: Request = (question.question, *question.answers, answer)
            if request not in self._judged:
                self._judged[request] = self._judge(self.grader, question, answer, request)
            return self._judged[request]
        by_keywords = self.grader == "kw" or self.grader is GRADERS["kw"]
        references = (by_keywords and question.keywords) or question.answers
        return grade(resolve_grader(self.grader), answer, references)

    def outcomes(
        self, questions: Sequence[ComparedQuestion], answers: Sequence[Sequence[str]]
    ) -> tuple[tuple[float, ...], ...]:
        """Return question -> arrangement -> outcome; equal answers to a question are graded once.

        Parameters
        ----------
        questions, answers
            The questions, and the answers to each of them by arrangement.
        """
        graded = []
        for question, texts in zip(questions, answers, strict=True):
            scores = {text: self(question, text) for text in {*texts}}
            graded.append(tuple(scores[text] for text in texts))
        return tuple(graded)

    def _judge(
        self, judge: Judge, question: ComparedQuestion, answer: str, request: Request
    ) -> float:
        kept = None if self.journal is None else self.journal.get(judge.identity, request)
        if isinstance(kept, list):
            return kept[0]
        returned = judge.function(question.question, question.answers, answer)
        score = checked_score(returned, f"judge {judge.name!r}")
        if self.journal is not None:
            self.journal.add(judge.identity, request, [score])
        return score
