"""The prompts of a comparison: every strategy arranges the passages of every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from shared_core.comparison.questions import RankedCase
from shared_core.comparison.retrieval import RetrievalSetting
from shared_core.comparison.strategies import Order, ReadingStrategy, Strategy
from shared_core.errors import GenerationError
from shared_core.generation.ask import ModelClient
from shared_core.generation.failures import check_failed
from shared_core.generation.responses import Failed, Request, Response
from shared_core.generation.templates import PromptTemplate

FIRST = 32
"""How many prompts are asked before one of their answers is graded, and then the others."""

Found: TypeAlias = Mapping[Request, Response | Failed]

Progress: TypeAlias = Callable[[int], None] | None
Waiting: TypeAlias = Callable[[str], None] | None


@dataclass(frozen=True)
class OrderedPrompts:
    """The orders in which one strategy puts one question's passages, and their prompts."""

    orders: tuple[Order, ...]
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class OrderedAnswers:
    """The same orders, with the answers of the model."""

    orders: tuple[Order, ...]
    answers: tuple[str, ...]


Place: TypeAlias = tuple[int, str, int]
"""Number of a setting, name of a strategy, number of a question."""


@dataclass(frozen=True, kw_only=True)
class PromptSet:
    """What a model is asked in a comparison.

    Attributes
    ----------
    settings, strategies
        Every strategy arranges the passages of every setting.
    template
        The prompt.
    max_failed
        Share of a setting's questions that may fail, in [0, 1).
    """

    settings: tuple[RetrievalSetting, ...]
    strategies: tuple[Strategy, ...]
    template: PromptTemplate
    max_failed: float

    def reads(self) -> dict[str, list[Request]]:
        """Return strategy -> the different requests that must be answered before its prompts."""
        seen: dict[Request, str] = {}
        for _, strategy, case in self._cases():
            for request in strategy.reads(case):
                seen.setdefault(request, strategy.name)
        found: dict[str, list[Request]] = {}
        for request, name in seen.items():
            found.setdefault(name, []).append(request)
        return found

    def known(self, read: Found) -> tuple[list[Request], int]:
        """Return the different prompts that are known by what was read, and how many may come."""
        prompts: dict[Request, None] = {}
        to_come = 0
        for _, strategy, case in self._cases():
            if any(request not in read for request in strategy.reads(case)):
                to_come += 1
            elif isinstance(ordered := self._ordered(strategy, case, read), OrderedPrompts):
                prompts |= dict.fromkeys(ordered.requests)
        return [*prompts], to_come

    def ask(
        self,
        client: ModelClient,
        *,
        fresh: bool,
        on_first: Callable[[int, str], None],
        on_answer: Progress,
        on_wait: Waiting,
    ) -> list[dict[str, list[OrderedAnswers | Failed]]]:
        """Ask everything; return setting by setting strategy -> question -> answers or failure.

        If `fresh`, what the journal holds of prompts does not count, also where they are known only
        now that the model has been read. `on_first` is called with the first answer and the number
        of its question, while most of the others are still to be asked; the rest is as in
        `ComparisonJob.run`.

        Raises
        ------
        GenerationError
            If more than `max_failed` of a setting's questions fail, or the model would fail
            whatever it is asked.
        KeyboardInterrupt
            If interrupted, with a message that says what is kept.
        """
        read = self._read(client, on_answer, on_wait)
        failures = _Failures(self.settings, self.max_failed)
        ordered: dict[Place, OrderedPrompts | Failed] = {}
        for place, strategy, case in self._cases():
            ordered[place] = each = self._ordered(strategy, case, read)
            failures.expect(place, each)
        requests = [*failures.places]
        if fresh:
            client.forget(requests)

        def ask(some: Sequence[Request]) -> dict[Request, Response | Failed]:
            found = client.answers_or_failures(
                some,
                on_failure=failures.note,
                part_of=lambda: requests,
                on_answer=on_answer,
                on_wait=on_wait,
            )
            return dict(zip(some, found, strict=True))

        answers = ask(requests[:FIRST])
        for request, answer in answers.items():
            if not isinstance(answer, Failed):
                on_first(failures.places[request][0][2], str(answer))
                break
        answers |= ask(requests[FIRST:])
        return [
            {
                strategy.name: [
                    _answered(ordered[number, strategy.name, question], answers)
                    for question in range(len(setting.cases))
                ]
                for strategy in self.strategies
            }
            for number, setting in enumerate(self.settings)
        ]

    def _cases(self) -> Iterator[tuple[Place, Strategy, RankedCase]]:
        for number, setting in enumerate(self.settings):
            for strategy in self.strategies:
                for question, case in enumerate(setting.cases):
                    yield (number, strategy.name, question), strategy, case

    def _read(self, client: ModelClient, on_answer: Progress, on_wait: Waiting) -> Found:
        """Return the answers that the strategies need before they can order, or the failures."""
        failures = _Failures(self.settings, self.max_failed)
        for place, strategy, case in self._cases():
            for request in strategy.reads(case):
                failures.places.setdefault(request, []).append(place)
        read: dict[Request, Response | Failed] = {}
        strategies = {strategy.name: strategy for strategy in self.strategies}
        for name, requests in self.reads().items():
            strategy = strategies[name]
            reader = client
            if isinstance(strategy, ReadingStrategy):
                reader = replace(client, call=strategy.read)
            found = reader.answers_or_failures(
                requests, on_failure=failures.note, on_answer=on_answer, on_wait=on_wait
            )
            read |= zip(requests, found, strict=True)
        return read

    def _ordered(
        self, strategy: Strategy, case: RankedCase, read: Found
    ) -> OrderedPrompts | Failed:
        needed = {request: read[request] for request in strategy.reads(case)}
        for answer in needed.values():
            if isinstance(answer, Failed):
                return answer
        if not case.passages:
            return Failed(GenerationError("the pipeline found no passage"))
        try:
            orders = strategy.orders(case, needed)  # type: ignore[arg-type]
        except GenerationError as error:
            return Failed(error)
        documents = case.documents
        prompts = (
            self.template.render([documents[rank] for rank in order], case.question)
            for order in orders
        )
        return OrderedPrompts(tuple(orders), tuple((prompt,) for prompt in prompts))


def _answered(each: OrderedPrompts | Failed, answers: Found) -> OrderedAnswers | Failed:
    """Return orders with their answers, or the first failure among them."""
    if isinstance(each, Failed):
        return each
    texts = []
    for request in each.requests:
        answer = answers[request]
        if isinstance(answer, Failed):
            return answer
        texts.append(str(answer))
    return OrderedAnswers(each.orders, tuple(texts))


@dataclass(frozen=True)
class _Failures:
    """Counts the questions of each setting that have failed, and ends the run if too many have."""

    settings: Sequence[RetrievalSetting]
    max_failed: float
    places: dict[Request, list[Place]] = field(default_factory=dict)
    reasons: dict[int, dict[int, str]] = field(default_factory=dict)

    def expect(self, place: Place, each: OrderedPrompts | Failed) -> None:
        """Take note of prompts that are going to be asked, or of their failure."""
        if isinstance(each, Failed):
            self._count(place, each)
        else:
            for request in each.requests:
                self.places.setdefault(request, []).append(place)

    def note(self, request: Request, failed: Failed) -> None:
        """Take note of a request that has failed, for all that need it."""
        for place in self.places[request]:
            self._count(place, failed)

    def _count(self, place: Place, failed: Failed) -> None:
        number, _, question = place
        reasons = self.reasons.setdefault(number, {})
        reasons.setdefault(question, failed.reason)
        setting = self.settings[number]
        said = [reasons[each] for each in sorted(reasons)]
        check_failed(said, len(setting.cases), self.max_failed, setting.name)
