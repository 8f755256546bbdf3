"""Arrangements of one question's passages, before and after they are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shared_core.comparison.failing import Failed
from shared_core.comparison.strategy import Order
from shared_core.generation.checking import Request


@dataclass(frozen=True)
class Arranged:
    """The orders in which one strategy puts one question's passages, and the prompts of them."""

    orders: tuple[Order, ...]
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Answered:
    """The same with what the model said."""

    orders: tuple[Order, ...]
    answers: tuple[str, ...]


ByStrategy: TypeAlias = dict[str, list[Answered | Failed]]
"""Strategy -> question -> what came of it."""


def requests_of(arranged: Iterable[Sequence[Arranged | Failed]]) -> Iterator[Request]:
    """Yield the prompts of all arrangements."""
    for by_question in arranged:
        for each in by_question:
            if isinstance(each, Arranged):
                yield from each.requests


def failure_of(each: Arranged | Failed, failures: Mapping[Request, Failed]) -> Failed | None:
    """Return why there is no arrangement, or not all its answers; None if there may be."""
    if isinstance(each, Failed):
        return each
    return next((failures[request] for request in each.requests if request in failures), None)


def answered(each: Arranged | Failed, answers: Mapping[Request, str | Failed]) -> Answered | Failed:
    """Return an arrangement with its answers, or the first failure among them."""
    if isinstance(each, Failed):
        return each
    texts = []
    for request in each.requests:
        answer = answers[request]
        if isinstance(answer, Failed):
            return answer
        texts.append(answer)
    return Answered(each.orders, tuple(texts))
