"""Questions that a model fails on: the others' answers count, and the failures are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from shared_core.comparison import Failure
from shared_core.errors import GenerationError, PosragError
from shared_core.generation import ModelClient
from shared_core.generation.responses import Failed
from shared_core.generation.retry import describe, is_refusal, is_transient

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 32
"""Fewest questions that are asked together: a chunk is halved until a failing one is found."""


def each_answered(
    function: Callable[[Sequence[T], Callable[[int], None]], Sequence[R]],
    questions: Sequence[T],
    asker: ModelClient,
    *,
    weight: Callable[[T], int] = lambda _: 1,
    on_answer: Callable[[int], None] | None = None,
) -> list[R | Failed]:
    """Return the function's value for each question, or how the model failed on it.

    Parameters
    ----------
    function
        Takes questions, and a callback for the number of answers received; returns one value per
        question. Whatever it raises is a failure of the model.
    questions
        At least one.
    asker
        Asks the model; decides how many questions are asked at a time.
    weight
        How many answers a question takes.
    on_answer
        Called with the number of answers just received or failed; none is counted twice.

    Raises
    ------
    GenerationError
        If the model fails on all the questions, or on all of those that are asked together first,
        or for a passing reason that did not pass.
    """

    def called(some: Sequence[T], on_answer: Callable[[int], None]) -> Sequence[R]:
        try:
            return function(some, on_answer)
        except PosragError:
            raise
        except Exception as error:  # what a model on this machine raises differs with the cause
            raise GenerationError(describe(error)) from error

    done, total = 0, sum(map(weight, questions))

    def report(count: int) -> None:
        nonlocal done
        done += count
        if on_answer is not None:
            on_answer(count)

    size = max(CHUNK, 2 * asker.batch_size * asker.concurrency)
    found: list[R | Failed] = []
    try:
        for chunk in _chunks(called, questions, size=size, weight=weight, on_answer=report):
            found += chunk
            _check_not_all_failed(found, len(questions))
    except KeyboardInterrupt:  # what was interrupted knows of its chunk alone
        if asker.journal is None:
            raise
        raise KeyboardInterrupt(
            f"{done:,} of {total:,} answers are there, and kept in {asker.journal.path}: run "
            "again to go on from there"
        ) from None
    return found


def each_or_failed(
    function: Callable[[Sequence[T]], Sequence[R]], items: Sequence[T]
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
        return [failed]
    half = len(items) // 2
    return [
        each for part in (items[:half], items[half:]) for each in each_or_failed(function, part)
    ]


def failures_of(found: Sequence[object], numbers: Sequence[int], what: str) -> tuple[Failure, ...]:
    """Return the failures among results; `numbers` are those of their questions, from 0."""
    return tuple(
        Failure(question=number, strategy=what, reason=each.reason)
        for number, each in zip(numbers, found, strict=True)
        if isinstance(each, Failed)
    )


def as_json(failures: Sequence[Failure], ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return failures with the ids of their questions."""
    return [
        {"question": ids[each.question], "at": each.strategy, "reason": each.reason}
        for each in failures
    ]


def _check_not_all_failed(found: Sequence[object], asked: int) -> None:
    failed = [each for each in found if isinstance(each, Failed)]
    if len(failed) < len(found):
        return
    which = f"every question that is left ({asked})"
    if len(found) < asked:
        which = f"each of the first {len(found)} questions"
    raise GenerationError(f"the model has failed on {which}; the first failure: {failed[0].reason}")


def _chunks(
    function: Callable[[Sequence[T], Callable[[int], None]], Sequence[R]],
    items: Sequence[T],
    *,
    size: int,
    weight: Callable[[T], int],
    on_answer: Callable[[int], None] | None,
) -> Iterator[list[R | Failed]]:
    """Yield what a function returns, or the failure, for `size` items at a time.

    `weight` is how many answers an item takes; `on_answer` is called with the number of answers
    just received or failed, none counted twice.
    """
    for start in range(0, len(items), size):
        chunk = items[start : start + size]
        total = sum(map(weight, chunk))
        progress = _Progress(total, on_answer)

        def called(
            some: Sequence[T], report: Callable[[int], None] = progress.report
        ) -> Sequence[R]:
            return function(some, report)

        yield each_or_failed(called, chunk)
        progress.report(total)


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
