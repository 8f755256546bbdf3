"""One comparison of one model on some data: its cost, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeAlias

from shared_core.comparison.analysis import analyse
from shared_core.comparison.grading import LOGPROB, Grading
from shared_core.comparison.questions import ComparisonData, RankedCase
from shared_core.comparison.result import SEQUENTIAL, ComparisonResult
from shared_core.comparison.retrieval import RetrievalSetting
from shared_core.comparison.strategies import Order, Strategy
from shared_core.errors import GenerationError
from shared_core.generation.ask import ModelClient
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.models import Generator
from shared_core.generation.responses import Failed, Request, Response, check_failed
from shared_core.tokens import estimate_tokens

if TYPE_CHECKING:
    from shared_core.comparison.comparison import Comparison

FIRST = 32
"""How many prompts are asked before one of their answers is graded, and then the others."""

Place: TypeAlias = tuple[int, str, int]
"""Number of a setting, name of a strategy, number of a question."""

Arranged: TypeAlias = tuple[tuple[Order, Request], ...]
"""The orders in which a strategy puts a question's passages, and what is asked in each."""

Where: TypeAlias = dict[Request, list[Place]]
"""Request -> the places that need its answer."""

Found: TypeAlias = Mapping[Request, Response | Failed]


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
        Most calls: different prompts that are still to be asked, and readings that come before
        some of them (first rounds of ``"two_round"``, single passages of ``"distraction_aware"``),
        with all the prompts that these may add.
    prompt_tokens
        Tokens of their prompts.
    estimated
        Whether the tokens are estimated (`estimate_tokens`) and not counted by the model.
    """

    questions: int
    settings: int
    strategies: int
    ks: tuple[int, ...]
    kept: int
    calls: int
    prompt_tokens: int
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
    settings, strategies
        The passages; and every strategy arranges those of every setting.
    gradings
        How answers are judged; the first grader decides.
    seconds
        As of `Retrieval`.
    """

    options: Comparison
    model: Generator
    data: ComparisonData
    client: ModelClient
    settings: tuple[RetrievalSetting, ...]
    strategies: tuple[Strategy, ...]
    gradings: Sequence[Grading]
    seconds: Mapping[str, float]

    def plan(self) -> ComparisonPlan:
        """Return what `run` would cost now; neither the model nor a grader is asked."""
        read = self.client.kept([*self._reads])
        arranged = self._arranged(read)
        prompts = _prompts(arranged)
        answered = self.client.kept([*prompts])
        new = [prompt for prompt in prompts if prompt not in answered]
        again = [*self._again(arranged)]
        known = replace(self.client, repetition=2).kept(again)
        new += [prompt for prompt in again if prompt not in known]
        new += [prompt for prompt in self._reads if prompt not in read]
        texts = [text for text, *_ in new]
        texts += [
            case.template.render(case.documents, case.question)
            for place, (_, case) in self._cases.items()
            if place not in arranged
        ]
        counter = getattr(self.model, "count_tokens", None)
        return ComparisonPlan(
            questions=len(self.data.questions),
            settings=len(self.settings),
            strategies=len(self.strategies),
            ks=tuple(dict.fromkeys(setting.k for setting in self.settings)),
            kept=len(answered) + len(known) + len(read),
            calls=len(texts),
            prompt_tokens=sum(map(counter or estimate_tokens, texts)),
            estimated=counter is None,
        )

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
            If a grader does not return a number in [0, 1].
        """
        reasons: dict[int, dict[int, str]] = {}
        where = {**self._reads}  # the places of what is being asked
        ask = partial(
            ModelClient.answers_or_failures,
            on_failure=lambda request, failed: self._fail(where[request], failed, reasons),
            on_answer=on_answer,
            on_wait=on_wait,
        )
        read: dict[Request, Response | Failed] = {}
        for strategy in self.strategies:
            model = strategy if isinstance(strategy, Generator) else self.model
            requests = [each for each, at in where.items() if at[0][1] == strategy.name]
            read |= ask(replace(self.client, model=model), requests)
        arranged = self._arranged(read)
        for place, each in arranged.items():
            if isinstance(each, Failed):
                self._fail([place], each, reasons)
        prompts = _prompts(arranged)
        where |= prompts
        requests = [*prompts]
        answers = ask(self.client, requests[:FIRST])
        self._grade_one(answers, prompts)
        answers |= ask(self.client, requests[FIRST:])
        found = {place: _answered(each, answers) for place, each in arranged.items()}
        again = self._again(arranged)
        where |= again
        second = ask(replace(self.client, repetition=2), [*again])
        places = {place: second[request] for request, at in again.items() for place in at}
        return analyse(self, found, places)

    @property
    def by_probability(self) -> bool:
        """Whether the model is asked for the probability of an answer and not for one."""
        return LOGPROB in self.options.graders

    def _again(self, arranged: Mapping[Place, Arranged | Failed]) -> Where:
        """Return what is asked a second time: what is in ranked order, or nothing."""
        wanted = self.options.again
        wanted = not self.data.answered if wanted is None else wanted
        if not wanted or self.by_probability or isinstance(self.model, HuggingFaceModel):
            return {}
        return _prompts({place: each for place, each in arranged.items() if place[1] == SEQUENTIAL})

    @cached_property
    def _cases(self) -> dict[Place, tuple[Strategy, RankedCase]]:
        return {
            (number, strategy.name, question): (strategy, case)
            for number, setting in enumerate(self.settings)
            for strategy in self.strategies
            for question, case in enumerate(setting.cases)
        }

    @cached_property
    def _needed(self) -> dict[Place, list[Request]]:
        """What the model must have answered before the passages of a place are arranged."""
        return {place: strategy.reads(case) for place, (strategy, case) in self._cases.items()}

    @cached_property
    def _reads(self) -> Where:
        return _where(self._needed.items())

    def _arranged(self, read: Found) -> dict[Place, Arranged | Failed]:
        """Return what is asked at each place, as far as what it needs has been read."""
        return {
            place: self._arrange(place, {request: read[request] for request in needed})
            for place, needed in self._needed.items()
            if all(request in read for request in needed)
        }

    def _arrange(self, place: Place, read: Found) -> Arranged | Failed:
        strategy, case = self._cases[place]
        for answer in read.values():
            if isinstance(answer, Failed):
                return answer
        if not case.passages:
            return Failed(GenerationError("the pipeline found no passage"))
        try:
            orders = strategy.orders(case, read)  # type: ignore[arg-type]
        except GenerationError as error:
            return Failed(error)
        documents, answers = case.documents, self.data.questions[place[2]].answers
        scored = (f" {answers[0]}",) if self.by_probability else ()
        prompts = (
            case.template.render([documents[rank] for rank in order], case.question)
            for order in orders
        )
        return tuple(
            (order, (prompt, *scored)) for order, prompt in zip(orders, prompts, strict=True)
        )

    def _fail(
        self, places: Sequence[Place], failed: Failed, reasons: dict[int, dict[int, str]]
    ) -> None:
        """Note why questions of settings have failed, and end the run if too many have."""
        for number, _, question in places:
            setting, noted = self.settings[number], reasons.setdefault(number, {})
            noted.setdefault(question, failed.reason)
            said = [noted[each] for each in sorted(noted)]
            check_failed(said, len(setting.cases), self.options.max_failed, setting.name)

    def _grade_one(self, answers: Found, where: Where) -> None:
        """Grade one answer, so that a grader that fails does so before everything is asked."""
        for request, answer in answers.items():
            if not isinstance(answer, Failed):
                *_, number = where[request][0]
                for grading in self.gradings:
                    grading(self.data.questions[number], answer)
                return


def _prompts(arranged: Mapping[Place, Arranged | Failed]) -> Where:
    return _where(
        (place, [request for _, request in each])
        for place, each in arranged.items()
        if not isinstance(each, Failed)
    )


def _where(asked: Iterable[tuple[Place, Sequence[Request]]]) -> Where:
    """Return each different request with the places that need it."""
    found: Where = {}
    for place, requests in asked:
        for request in requests:
            found.setdefault(request, []).append(place)
    return found


def _answered(
    each: Arranged | Failed, answers: Found
) -> tuple[tuple[Order, Response], ...] | Failed:
    """Return orders with their answers, or the first failure among them."""
    if isinstance(each, Failed):
        return each
    found = []
    for order, request in each:
        answer = answers[request]
        if isinstance(answer, Failed):
            return answer
        found.append((order, answer))
    return tuple(found)
