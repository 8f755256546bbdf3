"""One comparison of one model on some data: what it costs, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared_core.comparison.assembling import assemble
from shared_core.comparison.figures import Testing
from shared_core.comparison.grading import Grading
from shared_core.comparison.plan import ComparisonPlan
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.work import Work
from shared_core.generation.base import Generator


@dataclass(frozen=True, kw_only=True)
class ComparisonJob:
    """A comparison whose passages are retrieved; `Comparison.job` returns one.

    Attributes
    ----------
    model, data
        Who is asked what.
    work
        The passages of all settings, and what is done with them.
    gradings, testing
        How answers are judged; the first grader decides.
    shuffles, profile, embedding
        For the record: random orders a question, and the names of the position profile and the
        embedding model.
    """

    model: Generator
    data: ComparisonData
    work: Work
    gradings: Sequence[Grading]
    testing: Testing
    shuffles: int
    profile: str | None
    embedding: str | None

    def plan(self) -> ComparisonPlan:
        """Return what `run` costs by now; the model is not asked."""
        return ComparisonPlan.of(self.work, self.model)

    def forget(self) -> None:
        """Have `run` ask everything anew, whatever the journal holds."""
        self.work.forget()

    def run(
        self,
        *,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> ComparisonResult:
        """Ask the model and return what came of it.

        Parameters
        ----------
        on_answer
            Called with the number of prompts answered, and readings made, since the last call.
        on_wait
            Called with a sentence when a call is put off after a passing failure.

        Raises
        ------
        GenerationError
            If the model fails on more than `Comparison.max_failed` of the questions of a setting,
            or for a passing reason that did not pass.
        ValueError
            If a judge returns no score in [0, 1].
        MissingExtraError
            If ir-measures or tenacity is not installed.
        """
        return assemble(
            self.data,
            self.work,
            self.work.run(on_answer=on_answer, on_wait=on_wait),
            self.gradings,
            self.testing,
            model=self.model.name,
            shuffles=self.shuffles,
            profile=self.profile,
            embedding=self.embedding,
        )
