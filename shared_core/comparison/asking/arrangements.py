"""Arrangements of the passages of a question, before and after the model is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shared_core.comparison.strategies.base import Order
from shared_core.generation.checking import Request, Response
from shared_core.generation.failures import Failed


@dataclass(frozen=True)
class Arranged:
    """The orders in which one strategy puts one question's passages, and their prompts."""

    orders: tuple[Order, ...]
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Answered:
    """The same orders, with the answers of the model."""

    orders: tuple[Order, ...]
    answers: tuple[str, ...]


ByStrategy: TypeAlias = dict[str, list[Answered | Failed]]
"""Strategy -> question -> its answers, or the failure."""


def requests_of(arranged: Iterable[Sequence[Arranged | Failed]]) -> Iterator[Request]:
    """Yield the prompts of all arrangements."""
    for by_question in arranged:
        for each in by_question:
            if isinstance(each, Arranged):
                yield from each.requests


def question_of(request: Request, arranged: Iterable[Iterable[Sequence[Arranged | Failed]]]) -> int:
    """Return the number of the question that a prompt asks; `arranged` is setting by setting."""
    return next(
        number
        for by_strategy in arranged
        for by_question in by_strategy
        for number, each in enumerate(by_question)
        if isinstance(each, Arranged) and request in each.requests
    )


def failure_of(each: Arranged | Failed, failures: Mapping[Request, Failed]) -> Failed | None:
    """Return why the arrangement or an answer is missing; None if no failure is known."""
    if isinstance(each, Failed):
        return each
    return next((failures[request] for request in each.requests if request in failures), None)


def with_answers(
    each: Arranged | Failed, answers: Mapping[Request, Response | Failed]
) -> Answered | Failed:
    """Return an arrangement with its answers, or the first failure among them."""
    if isinstance(each, Failed):
        return each
    texts = []
    for request in each.requests:
        answer = answers[request]
        if isinstance(answer, Failed):
            return answer
        texts.append(str(answer))
    return Answered(each.orders, tuple(texts))
