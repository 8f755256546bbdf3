"""One run over many prompts: each batch is asked, kept and reported as soon as it is answered."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from shared_core.errors import GenerationError, PosragError
from shared_core.generation.checking import Request, Response, checked, one_each
from shared_core.generation.failures import Failed
from shared_core.generation.retrying import (
    WaitEndedError,
    call_with_retries,
    explain,
    is_refusal,
    is_transient,
    pause,
)
from shared_core.generation.workers import Post

if TYPE_CHECKING:
    from shared_core.generation.asking import Asker


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of `Asker.answers` or `Asker.answers_or_failures`.

    `ask` runs in several threads, everything else that reports in the calling one.

    Attributes
    ----------
    asker
        Asks the model.
    wanted
        Request -> how often it was given.
    whole
        Returns every request of the job that they are a part of.
    on_answer, on_wait, on_failure
        As of `Asker.answers_or_failures`; without `on_failure` the first failure ends the run.
    answers, failures
        What has come of the requests so far.
    stop
        Set when no further request is to be made.
    """

    asker: Asker
    wanted: Counter[Request]
    whole: Callable[[], Sequence[Request]]
    on_answer: Callable[[int], None] | None
    on_wait: Callable[[str], None] | None
    on_failure: Callable[[Request, Failed], None] | None
    answers: dict[Request, Response] = field(default_factory=dict)
    failures: dict[Request, Failed] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def take(self, answers: dict[Request, Response]) -> None:
        """Have answers, and report them."""
        self.answers.update(answers)
        self._count([*answers])

    def ask(self, numbered: tuple[int, Sequence[Request]], post: Post) -> None:
        """Ask one batch, and keep the valid answers even if others are not.

        A call that fails for several requests is made again for each half of them.
        """
        number, batch = numbered
        if self.stop.is_set():
            return
        before = len(self.answers)
        try:
            answers, failures = self._answered(number, batch, post)
        except WaitEndedError:
            return
        except GenerationError as error:
            if self.on_failure is None or self._is_down(error, numbered, before, post):
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                self.ask((number, batch[:half]), post)
                self.ask((number, batch[half:]), post)
                return
            answers, failures = {}, {batch[0]: Failed(error)}
        if self.asker.journal is not None:
            for request, answer in answers.items():
                self.asker.journal.add(self.asker.name, request, answer)
        post(partial(self.take, answers))
        if failures and self.on_failure is None:
            raise next(iter(failures.values())).error
        post(partial(self._miss, failures))

    def _miss(self, failures: dict[Request, Failed]) -> None:
        for request, failed in failures.items():
            self.failures[request] = failed
            if self.on_failure is not None:
                self.on_failure(request, failed)
        self._count([*failures])

    def _count(self, requests: Sequence[Request]) -> None:
        if requests and self.on_answer is not None:
            self.on_answer(sum(self.wanted[request] for request in requests))

    def _tell(self, message: str) -> None:
        if self.on_wait is not None:
            self.on_wait(message)

    def _answered(
        self, number: int, batch: Sequence[Request], post: Post
    ) -> tuple[dict[Request, Response], dict[Request, Failed]]:
        """Return the valid answers, and the failures of the others."""
        returned = one_each(self.asker.label, batch, self._call(number, batch, post))
        answers: dict[Request, Response] = {}
        failures: dict[Request, Failed] = {}
        for request, response in zip(batch, returned, strict=True):
            try:
                answers[request] = checked(self.asker.label, request, response)
            except GenerationError as error:
                failures[request] = Failed(error)
        return answers, failures

    def _is_down(
        self,
        error: GenerationError,
        numbered: tuple[int, Sequence[Request]],
        before: int,
        post: Post,
    ) -> bool:
        """Whether a call has failed because none would succeed, whatever is asked.

        After a passing failure that did not pass, one other request tells the two apart, if
        possible one that was answered before; none is made if there has been an answer since the
        call began, `before` being how many there were then.
        """
        if is_refusal(error) or not is_transient(error):
            return is_refusal(error)
        if len(self.answers) > before:
            return False
        number, batch = numbered
        others = [request for request in self.whole() if request not in batch]
        if not others:
            return True
        known = (each for each in others if each in self.answers or self.asker.known([each]))
        other = next(known, others[-1])
        try:
            self._call(number, [other], post)
        except WaitEndedError:
            return True
        except GenerationError as failure:
            return is_refusal(failure) or is_transient(failure)
        return False

    def _call(self, number: int, batch: Sequence[Request], post: Post) -> object:
        calls = 0

        def call() -> object:
            nonlocal calls
            calls += 1
            return self.asker.call(batch)

        try:
            return call_with_retries(
                call,
                attempts=self.asker.attempts,
                sleep=partial(pause, stop=self.stop),
                on_wait=lambda message: post(partial(self._tell, message)),
                seed=number,
            )
        except (WaitEndedError, PosragError):
            raise
        except Exception as error:
            after = f" after {calls} attempts" if calls > 1 else ""
            text = f"model {self.asker.label!r} failed{after}: {explain(error)}"
            raise GenerationError(text) from error
