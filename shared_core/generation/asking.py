"""Many prompts to one model: no request is sent twice, and no answer is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from shared_core.checking import check_counts_of
from shared_core.errors import GenerationError
from shared_core.generation.base import Generator, ScoringModel
from shared_core.generation.checking import Request, Response
from shared_core.generation.failures import Failed
from shared_core.generation.identity import model_identity
from shared_core.generation.journal import Journal, NotKeptError
from shared_core.generation.running import Run
from shared_core.generation.workers import for_each

__all__ = ["Asker", "Request", "Response"]


@dataclass(frozen=True, kw_only=True)
class Asker:
    """Asks one model in batches, retries transient failures, and keeps each answer.

    Attributes
    ----------
    name
        Name of the model, under which its answers are kept.
    call
        The model: returns one response a request, in order. With ``concurrency > 1`` it is
        called in several threads at once.
    journal
        Where answers are kept, and looked up before anything is asked.
    batch_size
        Requests a call, >= 1.
    concurrency
        Calls at once, >= 1. With 1 the model is called in the calling thread.
    attempts
        How often a call is made before its failure counts, >= 1.
    label
        What errors call the model; its `name` by default.

    Raises
    ------
    ValueError
        If `batch_size`, `concurrency` or `attempts` is not an integer >= 1.
    """

    name: str
    call: Callable[[Sequence[Request]], Sequence[Response]]
    journal: Journal | None = None
    batch_size: int = 1
    concurrency: int = 1
    attempts: int = 8
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)
        check_counts_of(self, {"batch_size": 1, "concurrency": 1, "attempts": 1})

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

        A request with a continuation needs a `ScoringModel`; one call's requests are of one kind.
        Answers are kept under the model's identity (`model_identity`); errors give its name.
        """
        if batch_size is None:
            batch_size = getattr(model, "batch_size", 1)
        if concurrency is None:
            concurrency = getattr(model, "concurrency", 1)
        return cls(
            name=model_identity(model),
            call=partial(_ask, model),
            journal=journal,
            batch_size=batch_size,
            concurrency=concurrency,
            attempts=attempts,
            label=model.name,
        )

    def known(self, requests: Sequence[Request]) -> int:
        """Return how many of the different requests are answered in the journal."""
        return len(self._kept(requests))

    def answers(
        self,
        requests: Sequence[Request],
        *,
        part_of: Callable[[], Sequence[Request]] | None = None,
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
        part_of
            Returns every request of the job that `requests` is a part of; errors and interrupts
            report how many of those are kept. `requests` by default.
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
            If an answer cannot be kept; the message says how many are.
        KeyboardInterrupt
            If interrupted, with a message that says what is kept: that of a model that keeps its
            answers itself, else of the journal if there is one. The calls under way have seconds
            to end.
        """
        run = self._run(requests, part_of, on_answer, on_wait, None)
        return [run.answers[request] for request in requests]

    def answers_or_failures(
        self,
        requests: Sequence[Request],
        *,
        on_failure: Callable[[Request, Failed], None],
        part_of: Callable[[], Sequence[Request]] | None = None,
        on_answer: Callable[[int], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> list[Response | Failed]:
        """Return the responses, or the failures of requests that the model fails on.

        A request fails for good by an error that is not transient, or by a transient one on every
        attempt while the model answers others. A call of several requests that fails is made again
        for each half of them, until the one at fault is found.

        Parameters
        ----------
        requests, part_of, on_answer, on_wait
            As of `answers`; requests that fail are counted by `on_answer`, too.
        on_failure
            Called with each request that fails, as soon as that is known; what it raises ends the
            run. Called in the calling thread.

        Raises
        ------
        GenerationError
            If every call would fail: the key, the model or the address is refused (`is_refusal`),
            or another request fails for a transient reason as well. If `on_failure` raises one, it
            is said what is kept; calls under way then have seconds to end.
        NotKeptError, KeyboardInterrupt
            As `answers`.
        """
        run = self._run(requests, part_of, on_answer, on_wait, on_failure)
        return [run.failures.get(request) or run.answers[request] for request in requests]

    def _run(
        self,
        requests: Sequence[Request],
        part_of: Callable[[], Sequence[Request]] | None,
        on_answer: Callable[[int], None] | None,
        on_wait: Callable[[str], None] | None,
        on_failure: Callable[[Request, Failed], None] | None,
    ) -> Run:
        whole = part_of or (lambda: requests)
        run = Run(
            asker=self,
            wanted=Counter(requests),
            whole=whole,
            on_answer=on_answer,
            on_wait=on_wait,
            on_failure=on_failure,
        )
        run.take(self._kept(requests))
        missing = [request for request in run.wanted if request not in run.answers]
        starts = range(0, len(missing), self.batch_size)
        batches = [missing[start : start + self.batch_size] for start in starts]
        try:
            for_each([*enumerate(batches)], run.ask, threads=self.concurrency, stop=run.stop)
        except KeyboardInterrupt as interrupt:
            if interrupt.args or self.journal is None:
                raise
            raise KeyboardInterrupt(self.what_is_kept(whole())) from None
        except NotKeptError as failure:
            raise NotKeptError(f"{failure}; {self.what_is_kept(whole())}") from failure
        except GenerationError as failure:
            if failure.bare != str(failure):  # the model keeps its answers itself, and has said so
                raise
            text = f"{failure}; {self.what_is_kept(whole())}"
            raise GenerationError(text, bare=failure.bare) from failure.__cause__
        return run

    def what_is_kept(self, requests: Sequence[Request]) -> str:
        """Say how many of the different requests of a job are answered in the journal, and where.

        It is what errors and interrupts end with.
        """
        if self.journal is None:
            return "no answer is kept, because there is no journal"
        if self.journal.forgets:
            return f"no new answer is kept; those from before still are, in {self.journal.path}"
        kept, all_of_them = len(self._kept(requests)), len({*requests})
        text = f"{kept:,} of {all_of_them:,} answers are kept in {self.journal.path}"
        return f"{text}: run again to go on from there" if kept else text

    def _kept(self, requests: Sequence[Request]) -> dict[Request, Response]:
        if self.journal is None:
            return {}
        found = ((request, self.journal.get(self.name, request)) for request in {*requests})
        return {request: response for request, response in found if response is not None}


def _ask(model: Generator, requests: Sequence[Request]) -> Sequence[Response]:
    if len(requests[0]) == 1:
        return model.generate([prompt for (prompt,) in requests])
    if not isinstance(model, ScoringModel):
        raise GenerationError(
            f"model {model.name!r} has no log_probabilities, so it cannot score a continuation; "
            "give a model on this machine, such as a HuggingFaceModel"
        )
    prompts, continuations = zip(*requests, strict=True)
    scored = model.log_probabilities(prompts, continuations)
    return [list(tokens) for tokens in scored]
