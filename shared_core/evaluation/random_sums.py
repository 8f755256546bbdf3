"""Sums of independent random numbers, one for each question, and how far out a given sum is.

What the tests of this package have in common: given what a question's outcomes are, chance alone
decides which arrangement got which of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores

Whole: TypeAlias = npt.NDArray[np.int64]
Draw: TypeAlias = tuple[Whole, Scores]
"""The values that a question may add to the sum, rising from 0 or more, and their chances."""

_EXACT = 1 << 25
"""Most additions for an exact distribution, some 50 ms; beyond, the normal one is close."""


def sum_of_some(scores: Whole, size: int) -> Draw:
    """Return the distribution of the sum of `size` of the scores, drawn without replacement.

    Parameters
    ----------
    scores
        Shape (m,), >= 0.
    size
        How many are drawn, in [1, m].
    """
    if size == 1:  # the usual one, and sooner so
        values, counts = np.unique(scores, return_counts=True)
        return values, counts / len(scores)
    ways = np.zeros((size + 1, int(scores.sum()) + 1))
    ways[0, 0] = 1
    for score in scores:
        with_it = np.zeros_like(ways)
        with_it[1:, score:] = ways[:-1, : ways.shape[1] - score]
        ways += with_it
    values = np.flatnonzero(ways[size])
    return values, ways[size, values] / math.comb(len(scores), size)


def two_sided(draws: Sequence[Draw], observed: int) -> float:
    """Return twice the chance of a sum as far out as `observed`, on its side; 1 at most.

    Exact where it is quick (`_EXACT`: thousands of questions that are right or wrong, a hundred
    graded ones), else by the normal approximation.

    Parameters
    ----------
    draws
        One for each question, independent of each other.
    observed
        A sum that they may come to.
    """
    cells = 1 + sum(int(values[-1]) for values, _ in draws)
    if cells * sum(len(values) for values, _ in draws) > _EXACT:
        means = [float(values @ chances) for values, chances in draws]
        variance = sum(
            float((values - mean) ** 2 @ chances)
            for (values, chances), mean in zip(draws, means, strict=True)
        )
        return math.erfc(abs(observed - sum(means)) / math.sqrt(2 * variance))
    total = np.ones(1)
    for values, chances in draws:
        longer = np.zeros(len(total) + int(values[-1]))
        for value, chance in zip(values, chances, strict=True):
            longer[value : value + len(total)] += chance * total
        total = longer
    return min(1.0, 2 * float(min(total[: observed + 1].sum(), total[observed:].sum())))
