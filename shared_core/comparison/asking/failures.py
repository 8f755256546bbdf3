"""Items that make a function of the model fail: the others count, and the failures are reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from shared_core.errors import GenerationError
from shared_core.generation.failures import Failed
from shared_core.generation.retrying import is_refusal, is_transient

T = TypeVar("T")
R = TypeVar("R")


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
