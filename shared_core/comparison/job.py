"""One comparison of one model on some data: its cost, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared_core.comparison.analysis import analyse
from shared_core.comparison.grading import Grading
from shared_core.comparison.prompts import PromptSet
from shared_core.comparison.questions import ComparisonData
from shared_core.comparison.result import ComparisonResult
from shared_core.generation.ask import ModelClient
from shared_core.generation.models import Generator
from shared_core.tokens import estimate_tokens

if TYPE_CHECKING:
    from shared_core.comparison.comparison import Comparison


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
        Different prompts and readings whose answers are in the journal.
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


@dataclass(kw_only=True)
class ComparisonJob:
    """A comparison whose passages are retrieved; `Comparison.job` returns one.

    Attributes
    ----------
    options
        Of the comparison.
    model, data
        The model that is asked, and what it is asked.
    client
        Asks the model.
    prompts
        The passages of all settings, and what is asked about them.
    gradings
        How answers are judged; the first grader decides.
    fresh
        Whether `forget` was called, and `run` has not been since.
    """

    options: Comparison
    model: Generator
    data: ComparisonData
    client: ModelClient
    prompts: PromptSet
    gradings: Sequence[Grading]
    fresh: bool = field(default=False, init=False)

    def plan(self) -> ComparisonPlan:
        """Return what `run` would cost now; neither the model nor a grader is asked."""
        by_strategy = self.prompts.reads()
        reads = [request for each in by_strategy.values() for request in each]
        read = self.client.kept(reads)
        prompts, to_come = self.prompts.known(read)
        answered = self.client.kept(prompts)
        new = [prompt for prompt in prompts if prompt not in answered]
        unread = {
            name: [request for request in each if request not in read]
            for name, each in by_strategy.items()
        }
        counter = getattr(self.model, "count_tokens", None)
        count = counter or estimate_tokens
        settings = self.prompts.settings
        return ComparisonPlan(
            questions=len(self.data.questions),
            settings=len(settings),
            strategies=len(self.prompts.strategies),
            ks=tuple(dict.fromkeys(setting.k for setting in settings)),
            kept=len(answered) + len(read),
            calls=len(new),
            reads={name: len(each) for name, each in unread.items() if each},
            to_come=to_come,
            prompt_tokens=sum(count(prompt) for prompt, *_ in new),
            read_tokens=sum(count(prompt) for each in unread.values() for prompt, *_ in each),
            estimated=counter is None,
        )

    def forget(self) -> None:
        """Make `run` ask everything again, whatever the journal holds.

        What it holds is given up when the first new answer is there.
        """
        reads = [request for each in self.prompts.reads().values() for request in each]
        prompts, _ = self.prompts.known(self.client.kept(reads))
        self.client.forget([*reads, *prompts])
        self.fresh = True

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
        fresh, self.fresh = self.fresh, False
        found = self.prompts.ask(
            self.client,
            fresh=fresh,
            on_first=self._grade,
            on_answer=on_answer,
            on_wait=on_wait,
        )
        return analyse(self, found)

    def _grade(self, number: int, answer: str) -> None:
        """Grade one answer, so that a judge that fails does so before everything is asked."""
        for grading in self.gradings:
            grading(self.data.questions[number], answer)
