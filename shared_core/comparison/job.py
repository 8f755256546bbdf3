"""One comparison of one model on some data: its cost, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from shared_core.comparison.asking.work import Work
from shared_core.comparison.assembly import assemble
from shared_core.comparison.grading import Grading
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.statistics import Testing
from shared_core.generation.base import Generator
from shared_core.tokens import estimate_tokens


@dataclass(frozen=True)
class ComparisonPlan:
    """What a comparison is going to cost.

    Attributes
    ----------
    questions, settings, strategies
        How many there are; a setting is a pipeline and a k.
    ks
        Numbers of passages, in the order of the settings.
    kept
        Different prompts whose answers are in the journal.
    calls
        Different prompts that are still to be asked.
    reads
        Strategy -> readings of the model that are needed before the prompts are known: first
        rounds of ``"two_round"``, single passages of ``"distraction_aware"``.
    to_come
        Most prompts that these readings can add.
    prompt_tokens, read_tokens
        Tokens of the prompts of `calls`, and of `reads`.
    estimated
        Whether the tokens are estimated (`estimate_tokens`) and not counted by the model.
    """

    questions: int
    settings: int
    strategies: int
    ks: tuple[int, ...]
    kept: int
    calls: int
    reads: Mapping[str, int]
    to_come: int
    prompt_tokens: int
    read_tokens: int
    estimated: bool

    @classmethod
    def of(cls, work: Work, model: Generator) -> Self:
        """Return what is still to be done of some work, with the model that it asks."""
        prompts, unread, to_come = work.requests()
        new = [prompt for prompt in prompts if not work.asker.known([prompt])]
        counter = getattr(model, "count_tokens", None)
        count = counter or estimate_tokens
        return cls(
            questions=len(work.settings[0].questions),
            settings=len(work.settings),
            strategies=len(work.strategies),
            ks=tuple(dict.fromkeys(setting.k for setting in work.settings)),
            kept=len(prompts) - len(new),
            calls=len(new),
            reads={name: len(each) for name, each in unread.items()},
            to_come=to_come,
            prompt_tokens=sum(count(prompt) for prompt, *_ in new),
            read_tokens=sum(count(prompt) for each in unread.values() for prompt, *_ in each),
            estimated=counter is None,
        )


@dataclass(frozen=True, kw_only=True)
class ComparisonJob:
    """A comparison whose passages are retrieved; `Comparison.job` returns one.

    Attributes
    ----------
    model, data
        The model that is asked, and what it is asked.
    work
        The passages of all settings, and what is done with them.
    gradings, testing
        How answers are judged; the first grader decides.
    shuffles, profile, embedding
        For the record: random orders per question, and the names of the position profile and the
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
        """Return what `run` would cost now; the model is not asked."""
        return ComparisonPlan.of(self.work, self.model)

    def forget(self) -> None:
        """Make `run` ask everything again, whatever the journal holds.

        What it holds is given up when the first new answer is there.
        """
        self.work.forget()

    def run(
        self,
        *,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> ComparisonResult:
        """Ask the model and return the result.

        Parameters
        ----------
        on_answer
            Called with the number of prompts answered, and readings made, since the last call.
        on_wait
            Called with a sentence when a call is postponed after a transient failure.

        Raises
        ------
        GenerationError
            If the model fails on more than `Comparison.max_failed` of the questions of a setting,
            or would fail whatever it is asked.
        ValueError
            If a judge does not return a number in [0, 1].
        MissingExtraError
            If ir-measures is not installed.
        """
        return assemble(
            self.data,
            self.work,
            self.work.run(on_first=self._grade, on_answer=on_answer, on_wait=on_wait),
            self.gradings,
            self.testing,
            model=self.model.name,
            shuffles=self.shuffles,
            profile=self.profile,
            embedding=self.embedding,
        )

    def _grade(self, number: int, answer: str) -> None:
        """Grade one answer, so that a judge that fails does so before everything is asked."""
        for grading in self.gradings:
            grading(self.data.questions[number], answer)
