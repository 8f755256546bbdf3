"""Which questions are paired, and how their outcomes change from one arrangement to another.

An arrangement is one order of the passages of a question, or several whose mean is the question's
outcome. The typical size of a change is that of single orders: if one of three answers becomes
wrong, the mean moves by a third, but the change is that of a whole answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.generation.responses import Failed

T = TypeVar("T")

_DECIMALS = 12
"""Decimals of differences, so that rounding breaks no tie: 0.3 - 0.1 - 0.2 is -2.8e-17, not 0."""


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


def by_order(outcomes: npt.ArrayLike) -> Scores:
    """Return the outcomes of each question (row), order by order (column).

    Parameters
    ----------
    outcomes
        How right each question was, shape (n,), n >= 1, finite; or, of several orders, equally many
        for each question, shape (n, orders).
    """
    values = np.asarray(outcomes, np.float64)
    return values[:, None] if values.ndim == 1 else values


def paired_differences(a: npt.ArrayLike, b: npt.ArrayLike) -> Scores:
    """Return, question by question (row), each outcome in `a` less each in `b`.

    The mean of a question's differences is the difference of its means.

    Parameters
    ----------
    a, b
        Outcomes of the same questions, as in `by_order`.

    Returns
    -------
    ndarray
        Shape (n, orders of a * orders of b).

    Raises
    ------
    ValueError
        If the numbers of questions differ.
    """
    first, second = by_order(a), by_order(b)
    if len(first) != len(second):
        raise ValueError(
            f"a and b must hold outcomes of the same questions, got {len(first)} and {len(second)}"
        )
    differences = first[:, :, None] - second[:, None, :]
    return np.round(differences.reshape(len(first), -1), _DECIMALS)


def typical_change(differences: Scores) -> float:
    """Return how large a change is, if outcomes change: in (0, 1].

    ``(1 / c + sum(d ** 2)) / (1 / c + sum(abs(d)))``, where ``d ** 2`` and ``abs(d)`` are means
    over the differences of a question, and c, at least 1, is the effective number of changes,
    ``sum(abs(d)) ** 2 / sum(d ** 2)`` (Kish). This is the mean size of a change, weighted by its
    size, after adding a pseudo-change from wrong to right, of which each change gets its share. A
    mean difference of e takes a share ``e / m`` of questions that change by m, and then the
    variance of the differences is at least ``e * m - e ** 2``. Thus a few small changes neither
    pass for a mean that hardly varies, nor prove that there are no larger ones; many do. For
    outcomes of 0 and 1 it is 1.

    Parameters
    ----------
    differences
        In [-1, 1], a question a row, as `paired_differences` gives them.
    """
    squares = float((differences**2).mean(axis=1).sum())
    sizes = float(np.abs(differences).mean(axis=1).sum())
    share = squares / max(squares, sizes**2) if squares else 1.0
    return (share + squares) / (share + sizes)
