"""The work of a comparison: arrange the passages, ask the model, and collect its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import NamedTuple

from shared_core.comparison.asking.arrangements import (
    Arranged,
    ByStrategy,
    failure_of,
    question_of,
    requests_of,
    with_answers,
)
from shared_core.comparison.asking.failures import each_or_failed
from shared_core.comparison.retrieval.settings import Setting
from shared_core.comparison.strategies.base import Order, RankedCase, Strategy
from shared_core.errors import GenerationError
from shared_core.generation.asking import Asker
from shared_core.generation.checking import Request, Response
from shared_core.generation.failures import Failed, check_failed
from shared_core.generation.templates import PromptTemplate
from shared_core.wording import counted

FIRST = 32
"""How many prompts are asked before one of their answers is graded, and then the others."""


class Requests(NamedTuple):
    """What the model is going to be asked, as far as it is known.

    Attributes
    ----------
    prompts
        The different prompts that are known, answered already or not.
    unread
        Strategy -> requests to read the model on before the other prompts are known.
    to_come
        Most prompts that these readings can add.
    """

    prompts: list[Request]
    unread: dict[str, list[Request]]
    to_come: int


@dataclass(frozen=True, kw_only=True)
class Work:
    """All settings and strategies, and the model that is asked.

    Attributes
    ----------
    settings, strategies
        Every strategy arranges the passages of every setting.
    asker, template
        The model and its prompt.
    max_failed
        Share of a setting's questions that may fail, in [0, 1).
    """

    settings: tuple[Setting, ...]
    strategies: tuple[Strategy, ...]
    asker: Asker
    template: PromptTemplate
    max_failed: float

    def requests(self) -> Requests:
        """Return what the model is going to be asked, without asking it."""
        by_strategy = self._unread()
        unread = {request for each in by_strategy.values() for request in each}
        known, to_come = [], 0
        for setting, strategy in self._pairs():
            if unread.isdisjoint(strategy.reads(setting.cases)):
                known.append(self._arranged(setting, strategy))
            else:
                to_come += len(setting.cases)
        return Requests([*dict.fromkeys(requests_of(known))], by_strategy, to_come)

    def forget(self) -> None:
        """Make `run` ask and read everything again."""
        if self.asker.journal is not None:
            asked = [*self.requests().prompts, *self._reads()]
            self.asker.journal.forget(self.asker.name, asked)

    def run(
        self,
        *,
        on_first: Callable[[int, str], None],
        on_answer: Callable[[int], None] | None,
        on_wait: Callable[[str], None] | None,
    ) -> list[ByStrategy]:
        """Ask everything; return the answers and failures, setting by setting.

        `on_first` is called with the first answer and the number of its question, while most of the
        others are still to be asked; the rest is as in `ComparisonJob.run`.

        Raises
        ------
        GenerationError
            If more than `max_failed` of a setting's questions fail, or the model would fail
            whatever it is asked.
        KeyboardInterrupt
            If interrupted, with a message that says what is kept.
        """
        on_read = _ReadingProgress(on_answer)
        try:
            arranged = [
                [self._arranged(setting, strategy, on_read) for strategy in self.strategies]
                for setting in self.settings
            ]
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*self._what_is_read()) from None
        answers = self._asked(arranged, on_first, on_answer, on_wait)
        names = [strategy.name for strategy in self.strategies]
        return [
            {
                name: [with_answers(each, answers) for each in by_question]
                for name, by_question in zip(names, by_strategy, strict=True)
            }
            for by_strategy in arranged
        ]

    def _asked(
        self,
        arranged: Sequence[Sequence[Sequence[Arranged | Failed]]],
        on_first: Callable[[int, str], None],
        on_answer: Callable[[int], None] | None,
        on_wait: Callable[[str], None] | None,
    ) -> dict[Request, Response | Failed]:
        """Ask each prompt once; `arranged` is setting by setting, the rest as of `run`."""
        requests = [*dict.fromkeys(requests_of(chain.from_iterable(arranged)))]
        failures: dict[Request, Failed] = {}

        def note(request: Request, failed: Failed) -> None:
            failures[request] = failed
            self._check(arranged, failures)

        def ask(some: Sequence[Request]) -> dict[Request, Response | Failed]:
            found = self.asker.answers_or_failures(
                some,
                on_failure=note,
                part_of=lambda: requests,
                on_answer=on_answer,
                on_wait=on_wait,
            )
            return dict(zip(some, found, strict=True))

        self._check(arranged, failures)
        answers = ask(requests[:FIRST])
        for request, answer in answers.items():
            if not isinstance(answer, Failed):
                on_first(question_of(request, arranged), str(answer))
                break
        return answers | ask(requests[FIRST:])

    def _arranged(
        self,
        setting: Setting,
        strategy: Strategy,
        on_read: Callable[[Sequence[Request]], None] | None = None,
    ) -> list[Arranged | Failed]:
        cases = setting.cases
        # Only models that are read are read a batch at a time.
        size = self.asker.batch_size if strategy.reads(cases) else len(cases)
        orders: list[list[Order] | Failed] = []
        for start in range(0, len(cases), size):
            batch = cases[start : start + size]
            reads = strategy.reads(batch)
            new = [request for request in reads if not self.asker.known([request])]
            orders += each_or_failed(strategy.orders, batch)
            if on_read is not None:
                on_read(new)
        return [self._prompts(case, each) for case, each in zip(cases, orders, strict=True)]

    def _what_is_read(self) -> Iterator[str]:
        """Yield how many of all readings an interrupt leaves, not only of the current batch."""
        reads, journal = {*self._reads()}, self.asker.journal
        if reads and journal is not None:
            yield (
                f"{self.asker.known([*reads]):,} of {counted(len(reads), 'reading')} are kept in "
                f"{journal.path}: run again to go on from there"
            )

    def _unread(self) -> dict[str, list[Request]]:
        found: dict[Request, str] = {}
        for setting, strategy in self._pairs():
            for request in strategy.reads(setting.cases):
                found.setdefault(request, strategy.name)
        unread: dict[str, list[Request]] = {}
        for request, name in found.items():
            if not self.asker.known([request]):
                unread.setdefault(name, []).append(request)
        return unread

    def _reads(self) -> Iterator[Request]:
        for setting, strategy in self._pairs():
            yield from strategy.reads(setting.cases)

    def _pairs(self) -> Iterator[tuple[Setting, Strategy]]:
        return product(self.settings, self.strategies)

    def _prompts(self, case: RankedCase, orders: list[Order] | Failed) -> Arranged | Failed:
        if isinstance(orders, Failed):
            return orders
        if not case.documents:
            return Failed(GenerationError("the pipeline found no passage"))
        prompts = (
            self.template.render([case.documents[rank] for rank in order], case.question)
            for order in orders
        )
        return Arranged(tuple(orders), tuple((prompt,) for prompt in prompts))

    def _check(
        self,
        arranged: Sequence[Sequence[Sequence[Arranged | Failed]]],
        failures: Mapping[Request, Failed],
    ) -> None:
        for setting, by_strategy in zip(self.settings, arranged, strict=True):
            reasons: dict[int, str] = {}
            for by_question in by_strategy:
                for number, each in enumerate(by_question):
                    failed = failure_of(each, failures)
                    if failed is not None:
                        reasons.setdefault(number, failed.reason)
            said = [reasons[number] for number in sorted(reasons)]
            check_failed(said, len(setting.cases), self.max_failed, setting.name)


@dataclass
class _ReadingProgress:
    """Reports how many readings have been made; one that serves twice counts once."""

    on_answer: Callable[[int], None] | None
    done: set[Request] = field(default_factory=set)

    def __call__(self, reads: Sequence[Request]) -> None:
        new = {*reads} - self.done
        self.done |= new
        if new and self.on_answer is not None:
            self.on_answer(len(new))
