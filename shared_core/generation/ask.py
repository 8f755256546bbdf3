"""Many prompts to one model: no request is sent twice without need, and no answer is lost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from operator import call
from typing import Self, cast

from shared_core.checking import check_counts_of
from shared_core.errors import GenerationError, PosragError
from shared_core.generation import retry
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.journal import Journal
from shared_core.generation.models import Generator, ScoringModel
from shared_core.generation.responses import Failed, Request, Response, checked
from shared_core.generation.threads import Posts, pause, run_in_threads

__all__ = ["ModelClient", "Request", "Response"]

DOWN_AFTER = 3
"""After so many requests in a row that failed for transient reasons, a service is down."""


@dataclass(frozen=True, kw_only=True)
class ModelClient:
    """Asks one model in batches, retries transient failures, and keeps each answer.

    Attributes
    ----------
    model
        What is asked. With ``concurrency > 1`` it is called in several threads at once.
    fingerprint
        What its answers are kept under; the name of the model by default.
    journal
        Where answers are kept, and looked up before anything is asked.
    batch_size
        Requests a call, >= 1.
    concurrency
        Calls at once, >= 1. With 1 the model is called in the calling thread.
    attempts
        How often a request is sent before its failure counts, >= 1.
    repetition
        Which answer to a request this is about, >= 1: a model that samples may be asked several
        times, and each time its answer is kept.

    Raises
    ------
    ValueError
        If one of the four numbers is not an integer >= 1.
    """

    model: Generator
    fingerprint: str = ""
    journal: Journal | None = None
    batch_size: int = 1
    concurrency: int = 1
    attempts: int = 8
    repetition: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", self.fingerprint or self.model.name)
        names = ("batch_size", "concurrency", "attempts", "repetition")
        check_counts_of(self, dict.fromkeys(names, 1))

    @classmethod
    def of(
        cls,
        model: Generator,
        *,
        journal: Journal | None = None,
        batch_size: int | None = None,
        concurrency: int | None = None,
        attempts: int = 8,
    ) -> Self:
        """Return one that asks `model`, by default in batches and threads that suit it.

        The model's fingerprint, which takes reading all weights of a local one, is asked for if
        there is a journal.

        A request with a continuation needs a `ScoringModel`; one call's requests are of one kind.
        """
        if batch_size is None:
            batch_size = getattr(model, "batch_size", 1)
        if concurrency is None:
            concurrency = getattr(model, "concurrency", 1)
        return cls(
            model=model,
            fingerprint="" if journal is None else model_fingerprint(model),
            journal=journal,
            batch_size=batch_size,
            concurrency=concurrency,
            attempts=attempts,
        )

    def kept(self, requests: Sequence[Request]) -> dict[Request, Response]:
        """Return the answers that are in the journal."""
        if self.journal is None:
            return {}
        get = partial(self.journal.get, self.fingerprint, repetition=self.repetition)
        found = ((request, get(request)) for request in {*requests})
        return {request: response for request, response in found if response is not None}

    def answers(
        self,
        requests: Sequence[Request],
        *,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> list[Response]:
        """Return the responses in the order of the requests.

        Equal requests are asked once, those in the journal not at all. Each batch is in the
        journal as soon as it is answered. Both callbacks are called in the calling thread.

        Parameters
        ----------
        requests
            What is asked: ``(prompt,)`` for a text, ``(prompt, continuation)`` for scores.
        on_answer
            Called with how many of `requests` have just been answered, by the journal or the model;
            the counts add up to ``len(requests)``.
        on_wait
            Called before each wait with what happened.

        Raises
        ------
        GenerationError
            If a call failed for good, or a response is not what it must be. The calls under way
            are waited for, and their answers kept.
        NotKeptError
            If an answer cannot be kept.
        KeyboardInterrupt
            If interrupted. The calls under way have seconds to end.
        """
        found = self.answers_or_failures(
            requests, on_failure=None, on_answer=on_answer, on_wait=on_wait
        )
        return [cast("Response", found[each]) for each in requests]  # a failure was raised

    def answers_or_failures(
        self,
        requests: Sequence[Request],
        *,
        on_failure: Callable[[Request, Failed], None] | None,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> dict[Request, Response | Failed]:
        """Return the response to each request, or the failure if the model fails on it.

        A request fails for good by an error that is not transient, or by a transient one on every
        attempt.

        Parameters
        ----------
        requests, on_answer, on_wait
            As of `answers`; requests that fail are counted by `on_answer`, too.
        on_failure
            Called with each request that fails, as soon as that is known; what it raises ends the
            run. Called in the calling thread. None: as `answers`.

        Raises
        ------
        GenerationError
            If every call would fail: the key, the model or the address is refused
            (`retry.is_refusal`), or three requests in a row fail for transient reasons. If
            `on_failure` raises one, calls under way have seconds to end.
        NotKeptError, KeyboardInterrupt
            As `answers`.
        """
        run = _Run(self, Counter(requests), on_answer, on_wait, on_failure, {**self.kept(requests)})
        run.report(run.found)
        missing = [request for request in run.wanted if request not in run.found]
        if self.batch_size > 1:  # the longest request decides what its whole batch costs
            missing.sort(key=lambda request: -sum(map(len, request)))
        starts = range(0, len(missing), self.batch_size)
        batches = [missing[start : start + self.batch_size] for start in starts]
        if min(self.concurrency, len(batches)) > 1:
            posts = Posts()
            run.post = posts.put
            run_in_threads(batches, run.ask, posts, threads=self.concurrency, stop=run.stop)
        else:
            for batch in batches:
                run.ask(batch)
        return run.found


def _method(model: Generator, request: Request) -> Callable[..., object]:
    """Return what answers such requests; it takes their prompts, and continuations if there are."""
    if len(request) == 1:
        return model.generate
    if isinstance(model, ScoringModel):
        return model.log_probabilities
    raise GenerationError(
        f"model {model.name!r} has no log_probabilities, so it cannot score a continuation; "
        "give a model on this machine, such as a HuggingFaceModel"
    )


@dataclass
class _Run:
    """What one call of `ModelClient.answers_or_failures` has asked and found.

    `ask` runs in several threads, everything else that reports in the calling one.
    """

    client: ModelClient
    wanted: Counter[Request]
    on_answer: Callable[[int], None] | None
    on_wait: Callable[[str], None] | None
    on_failure: Callable[[Request, Failed], None] | None
    found: dict[Request, Response | Failed]
    post: Callable[[Callable[[], object]], object] = call
    """Has what it is given called in the calling thread."""
    stop: threading.Event = field(default_factory=threading.Event)
    unreached: int = 0
    """How many requests in a row have failed for a transient reason, with no answer between."""

    def report(self, found: Mapping[Request, Response | Failed]) -> None:
        """Tell what has come in; in the calling thread."""
        for request, answer in found.items():
            if isinstance(answer, Failed) and self.on_failure is not None:
                self.on_failure(request, answer)
        count = sum(self.wanted[request] for request in found)
        if count and self.on_answer is not None:
            self.on_answer(count)

    def ask(self, asked: Sequence[Request], tried: int = 0) -> None:
        """Ask one batch, and keep the valid answers even if others are not.

        After a call for several requests that failed, each is sent by itself: a model answers them
        one after another, say, so that some have been paid for; none is paid for a third time.
        """
        batch = [request for request in asked if request not in self.found]
        if self.stop.is_set() or not batch:
            return
        try:
            found = self._called(batch, tried)
            self.unreached = 0
        except GenerationError as error:
            passes = retry.is_transient(error)
            collecting = self.on_failure is not None and not retry.is_refusal(error)
            if len(batch) > 1 and (collecting or (passes and self.client.attempts > 1)):
                for request in batch:
                    self.ask([request], tried=1)
                return
            self.unreached = self.unreached + 1 if passes else 0
            if not collecting or self.unreached >= DOWN_AFTER:
                raise
            found = {batch[0]: Failed(error)}
        self._keep(found)

    def _keep(self, found: Mapping[Request, Response | Failed]) -> None:
        client = self.client
        answers = {key: each for key, each in found.items() if not isinstance(each, Failed)}
        if client.journal is not None:
            for request, answer in answers.items():
                client.journal.add(client.fingerprint, request, answer, client.repetition)
        new = answers if self.on_failure is None else found
        self.found.update(new)  # at once, or another thread would ask it as well
        self.post(partial(self.report, new))
        for each in found.values():
            if isinstance(each, Failed) and self.on_failure is None:
                raise each.error

    def _called(self, batch: Sequence[Request], tried: int) -> dict[Request, Response | Failed]:
        """Return the responses to a batch, where they are not valid what is wrong with them.

        A request that is alone is sent as often as it may be, several together once. Nothing is
        returned if the run is stopped during a wait.
        """
        client, chance = self.client, random.Random(str(batch[0]))
        method, name = _method(client.model, batch[0]), client.model.name
        for attempt in count(tried + 1):
            try:
                returned = method(*map(list, zip(*batch, strict=True)))
                break
            except Exception as error:
                if attempt < client.attempts and retry.is_transient(error):
                    if not self._wait(error, attempt + 1, chance):
                        return {}
                    if len(batch) == 1:
                        continue
                if isinstance(error, PosragError):
                    raise
                after = f" after {attempt} attempts" if attempt > 1 else ""
                text = f"model {name!r} failed{after}: {retry.describe(error)}"
                raise GenerationError(text) from error
        return checked(name, batch, returned)

    def _wait(self, error: Exception, attempt: int, chance: random.Random) -> bool:
        """Wait before an attempt; return False if the run is stopped meanwhile."""
        seconds = retry.seconds_before(attempt, error, chance)
        if self.on_wait is not None:
            waiting = f"waiting {seconds:.0f} s before attempt {attempt} of {self.client.attempts}"
            self.post(partial(self.on_wait, f"{retry.describe(error)}; {waiting}"))
        return pause(seconds, self.stop)
