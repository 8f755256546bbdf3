"""Questions that a model fails on: the others' answers count, and the failures are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from shared_core.comparison import Failure
from shared_core.comparison.asking.failures import Failed, chunk_size, chunks_or_failed
from shared_core.errors import GenerationError, PosragError
from shared_core.generation import Asker
from shared_core.generation.retrying import describe

T = TypeVar("T")
R = TypeVar("R")


def each_answered(
    function: Callable[[Sequence[T], Callable[[int], None]], Sequence[R]],
    questions: Sequence[T],
    asker: Asker,
    *,
    weight: Callable[[T], int] = lambda _: 1,
    on_answer: Callable[[int], None] | None = None,
) -> list[R | Failed]:
    """Return the function's value for each question, or how the model failed on it.

    Parameters
    ----------
    function, questions, weight, on_answer
        As of `chunks_or_failed`. Whatever the function raises is a failure of the model.
    asker
        Asks the model; decides how many questions are asked at a time.

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

    size = chunk_size(asker)
    chunks = chunks_or_failed(called, questions, size=size, weight=weight, on_answer=on_answer)
    found: list[R | Failed] = []
    for chunk in chunks:
        found += chunk
        failed = [each for each in found if isinstance(each, Failed)]
        if len(failed) == len(found):
            which = (
                f"every question that is left ({len(found)})"
                if len(found) == len(questions)
                else f"each of the first {len(found)} questions"
            )
            raise GenerationError(
                f"the model has failed on {which}; the first failure: {failed[0].reason}"
            )
    return found


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
