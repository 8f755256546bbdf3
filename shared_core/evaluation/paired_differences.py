"""How the outcomes of the same questions change from one arrangement to another.

An arrangement is one order of the passages of a question, or several whose mean is the question's
outcome. The typical size of a change is that of single orders: if one of three answers becomes
wrong, the mean moves by a third, but the change is that of a whole answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores

_DECIMALS = 12
"""Decimals of differences, so that rounding breaks no tie: 0.3 - 0.1 - 0.2 is -2.8e-17, not 0."""


def by_order(outcomes: npt.ArrayLike) -> Scores:
    """Return the outcomes of each question (row), order by order (column).

    Parameters
    ----------
    outcomes
        How right each question was, shape (n,), n >= 1; or, of several orders, n sequences of one
        value for each order. Their numbers may differ.

    Returns
    -------
    ndarray
        Shape (n, orders), NaN where a question has fewer orders than another.

    Raises
    ------
    ValueError
        If there is no question, one has no outcome, or an outcome is not finite.
    """
    try:
        values = np.asarray(outcomes, np.float64)
    except ValueError:  # from numpy, where numbers of orders differ
        listed = np.atleast_1d(np.asarray(outcomes, object))
        return _padded([np.asarray(each, np.float64) for each in listed])
    values = values[:, None] if values.ndim == 1 else values
    _check(values)
    return values


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
        Shape (n, orders of a * orders of b), NaN where a question has fewer.

    Raises
    ------
    ValueError
        If the numbers of questions differ, or outcomes are not as in `by_order`.
    """
    first, second = by_order(a), by_order(b)
    if len(first) != len(second):
        raise ValueError(
            f"a and b must hold outcomes of the same questions, got {len(first)} and {len(second)}"
        )
    differences = first[:, :, None] - second[:, None, :]
    return np.round(differences.reshape(len(first), -1), _DECIMALS)


def question_means(rows: Scores) -> Scores:
    """Return the mean of each question's outcomes or differences, shape (n,)."""
    means: Scores = np.nanmean(rows, axis=1)
    return means


def typical_change(differences: Scores) -> float:
    """Return how large a change is, if outcomes change: in (0, 1].

    ``(1 + sum(d ** 2)) / (1 + sum(abs(d)))``, where ``d ** 2`` and ``abs(d)`` are means over the
    differences of a question. This is the mean size of a change, weighted by its size, after adding
    a pseudo-change from wrong to right. A mean difference of e takes a share ``e / m`` of questions
    that change by m, and then the variance of the differences is at least ``e * m - e ** 2``. Thus
    a few small changes neither pass for a mean that hardly varies, nor prove that there are no
    larger ones. For outcomes of 0 and 1 it is 1.

    Parameters
    ----------
    differences
        In [-1, 1], a question a row, as `paired_differences` gives them.
    """
    squares = float(question_means(differences**2).sum())
    sizes = float(question_means(np.abs(differences)).sum())
    return (1 + squares) / (1 + sizes)


def _padded(rows: Sequence[Scores]) -> Scores:
    values = np.full((len(rows), max(row.size for row in rows)), np.nan)
    for at, row in enumerate(rows):
        _check(row[None])
        values[at, : row.size] = row
    return values


def _check(rows: Scores) -> None:
    if rows.ndim != 2 or not rows.size:
        raise ValueError(
            f"outcomes must be one value or several for each question, got shape {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError("outcomes must be finite; leave out questions that have none")
