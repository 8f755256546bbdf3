"""Which questions can be compared: those that every arm of an experiment has an answer to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from shared_core.generation.responses import Failed

T = TypeVar("T")


def complete_cases(cases: Iterable[Sequence[T | Failed]]) -> dict[int, tuple[T, ...]]:
    """Drop each question on which any arm failed, from all arms, so that they stay paired.

    Parameters
    ----------
    cases
        For each question what each arm got: an answer, or `Failed`.

    Returns
    -------
    dict of int to tuple
        Number of the question, from 0, ascending -> its answers, arm by arm.
    """
    complete = {}
    for number, case in enumerate(cases):
        answers = tuple(each for each in case if not isinstance(each, Failed))
        if len(answers) == len(case):
            complete[number] = answers
    return complete
