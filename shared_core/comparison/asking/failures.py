"""Asks a model that may fail on some requests: the others count, and the failures are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shared_core.errors import GenerationError
from shared_core.generation.asking import Asker
from shared_core.generation.checking import Request
from shared_core.generation.retrying import describe, is_refusal, is_transient

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 32
"""Fewest requests that are asked together: a chunk is halved until a failing one is found."""


@dataclass(frozen=True)
class Failed:
    """Takes the place of an answer that the model failed to give."""

    error: GenerationError

    @property
    def reason(self) -> str:
        """Why, in one line."""
        cause = self.error.__cause__
        return self.error.bare if cause is None else describe(cause)


def each_or_failed(
    function: Callable[[Sequence[T]], Sequence[R]],
    items: Sequence[T],
    *,
    on_failure: Callable[[T, Failed], None] | None = None,
) -> list[R | Failed]:
    """Return what `function` returns, item by item, or the failure of items that make it fail.

    A transient failure (after all its attempts) or a refusal fails as a whole: the service is down
    or the key is wrong, whatever is asked.

    Parameters
    ----------
    function
        Takes some of the items and returns one value for each.
    items
        At least one.
    on_failure
        Called with each item that fails, as soon as that is known; what it raises ends the search.

    Raises
    ------
    GenerationError
        If the failure is transient (`is_transient`) or a refusal (`is_refusal`).
    """
    try:
        return [*function(items)]
    except GenerationError as error:
        cause = error.__cause__
        if cause is not None and (is_transient(cause) or is_refusal(cause)):
            raise
        failed = Failed(error)
    if len(items) == 1:
        if on_failure is not None:
            on_failure(items[0], failed)
        return [failed]
    half = len(items) // 2
    return [
        each
        for part in (items[:half], items[half:])
        for each in each_or_failed(function, part, on_failure=on_failure)
    ]


def chunks_or_failed(
    function: Callable[[Sequence[T], Callable[[int], None]], Sequence[R]],
    items: Sequence[T],
    *,
    size: int,
    weight: Callable[[T], int] = lambda _: 1,
    on_answer: Callable[[int], None] | None = None,
    on_failure: Callable[[T, Failed], None] | None = None,
) -> Iterator[list[R | Failed]]:
    """Yield what a function returns, or the failure, for a chunk of items at a time.

    Parameters
    ----------
    function
        Takes items, and a callback for the number of answers received; returns one value per item.
    items
        What it is called with, `size` at a time.
    size
        >= 1.
    weight
        How many answers an item takes.
    on_answer
        Called with the number of answers just received or failed; none is counted twice.
    on_failure
        As of `each_or_failed`.

    Raises
    ------
    GenerationError
        If a failure is transient, or a refusal.
    """
    for start in range(0, len(items), size):
        chunk = items[start : start + size]
        total = sum(map(weight, chunk))
        progress = _Progress(total, on_answer)

        def called(
            some: Sequence[T], report: Callable[[int], None] = progress.report
        ) -> Sequence[R]:
            return function(some, report)

        yield each_or_failed(called, chunk, on_failure=on_failure)
        progress.report(total)


def answers_or_failures(
    asker: Asker,
    requests: Sequence[Request],
    *,
    check: Callable[[Mapping[Request, Failed]], None],
    on_first: Callable[[Request, str], None] | None = None,
    on_answer: Callable[[int], None] | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> dict[Request, str | Failed]:
    """Ask every request once, a chunk at a time, and skip those that the model fails on.

    Parameters
    ----------
    asker
        Asks the model, and keeps its answers.
    requests
        What is asked; equal ones are asked once.
    check
        Called with all failures so far whenever there is a new one; raises if they are too many.
    on_first
        Called with the first request that is answered, and its answer, before many more are asked.
    on_answer
        Called with the number of different requests just answered or failed.
    on_wait
        As in `Asker.answers`.

    Raises
    ------
    GenerationError
        If the model fails for a transient reason on every attempt, or refuses, or `check` raises.
    """
    different = [*dict.fromkeys(requests)]
    found: dict[Request, str | Failed] = {}
    failures: dict[Request, Failed] = {}

    def note(request: Request, failed: Failed) -> None:
        failures[request] = failed
        check(failures)

    def ask(some: Sequence[Request], report: Callable[[int], None]) -> list[str]:
        answers = asker.answers(some, part_of=lambda: different, on_answer=report, on_wait=on_wait)
        return [str(answer) for answer in answers]

    chunks = chunks_or_failed(
        ask, different, size=chunk_size(asker), on_answer=on_answer, on_failure=note
    )
    for chunk in chunks:
        found.update(zip(different[len(found) :], chunk, strict=False))
        if on_first is not None:
            for request, answer in found.items():
                if isinstance(answer, str):
                    on_first(request, answer)
                    on_first = None
                    break
    return found


def chunk_size(asker: Asker) -> int:
    """Return how many requests are asked together."""
    return max(CHUNK, 2 * asker.batch_size * asker.concurrency)


@dataclass
class _Progress:
    """Forwards progress, at most `left` in all, so that retried requests are not counted twice."""

    left: int
    on_answer: Callable[[int], None] | None

    def report(self, count: int) -> None:
        new = min(count, self.left)
        self.left -= new
        if new and self.on_answer is not None:
            self.on_answer(new)
