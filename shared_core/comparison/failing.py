"""A model that fails on some of what it is asked: the others' answers count, the failures show."""

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
"""Requests that are asked together at least, so that one which fails holds up little."""


@dataclass(frozen=True)
class Failed:
    """What a model did not answer, and why."""

    error: GenerationError

    @property
    def reason(self) -> str:
        """One line."""
        cause = self.error.__cause__
        return self.error.bare if cause is None else describe(cause)


def each_or_failed(
    function: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]
) -> list[R | Failed]:
    """Return what `function` returns, item by item, or the failure of the items that make it fail.

    What fails for a passing reason (after all its attempts), or with a refusal, fails as a whole:
    the service is down, or the key is wrong, and the questions have nothing to do with it.

    Raises
    ------
    GenerationError
        If the failure is a passing one (`is_transient`) or a refusal (`is_refusal`).
    """
    try:
        return [*function(items)]
    except GenerationError as error:
        cause = error.__cause__
        if cause is not None and (is_transient(cause) or is_refusal(cause)):
            raise
        if len(items) == 1:
            return [Failed(error)]
    half = len(items) // 2
    return each_or_failed(function, items[:half]) + each_or_failed(function, items[half:])


def chunks_or_failed(
    function: Callable[[Sequence[T], Callable[[int], None]], Sequence[R]],
    items: Sequence[T],
    *,
    size: int,
    weight: Callable[[T], int] = lambda _: 1,
    on_answer: Callable[[int], None] | None = None,
) -> Iterator[list[R | Failed]]:
    """Yield what a function returns, item by item or the failure, some items at a time.

    Parameters
    ----------
    function
        Takes items, and what it may tell how many answers it has got; returns one value an item.
    items
        What it is called with, as many at a time as `size`.
    size
        >= 1.
    weight
        How many answers an item takes.
    on_answer
        Told how many answers have just come in or failed, none of them twice.

    Raises
    ------
    GenerationError
        If a failure is a passing one that did not pass, or a refusal.
    """
    for start in range(0, len(items), size):
        chunk = items[start : start + size]
        total = sum(map(weight, chunk))
        progress = _Progress(total, on_answer)

        def called(some: Sequence[T], told: Callable[[int], None] = progress.tell) -> Sequence[R]:
            return function(some, told)

        yield each_or_failed(called, chunk)
        progress.tell(total)


def answers_or_failures(
    asker: Asker,
    requests: Sequence[Request],
    *,
    check: Callable[[Mapping[Request, Failed]], None],
    on_answer: Callable[[int], None] | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> dict[Request, str | Failed]:
    """Ask every request once, some at a time, and go on past those that the model fails on.

    Parameters
    ----------
    asker
        Asks the model, and keeps its answers.
    requests
        What is asked; equal ones are asked once.
    check
        Called with all failures so far whenever there are new ones; raises if they are too many.
    on_answer
        Told how many different requests have just been answered, or failed.
    on_wait
        As in `Asker.answers`.

    Raises
    ------
    GenerationError
        If the model fails for a passing reason that did not pass, or refuses, or `check` raises it.
    """
    different = [*dict.fromkeys(requests)]
    found: dict[Request, str | Failed] = {}

    def ask(some: Sequence[Request], told: Callable[[int], None]) -> list[str]:
        answers = asker.answers(some, part_of=lambda: different, on_answer=told, on_wait=on_wait)
        return [str(answer) for answer in answers]

    for chunk in chunks_or_failed(ask, different, size=chunk_size(asker), on_answer=on_answer):
        found.update(zip(different[len(found) :], chunk, strict=False))
        if any(isinstance(each, Failed) for each in chunk):
            check({key: value for key, value in found.items() if isinstance(value, Failed)})
    return found


def chunk_size(asker: Asker) -> int:
    """Return how many requests are asked together."""
    return max(CHUNK, 2 * asker.batch_size * asker.concurrency)


@dataclass
class _Progress:
    """Forwards progress, at most `left` in all, so that retried requests are not counted twice."""

    left: int
    on_answer: Callable[[int], None] | None

    def tell(self, count: int) -> None:
        new = min(count, self.left)
        self.left -= new
        if new and self.on_answer is not None:
            self.on_answer(new)
