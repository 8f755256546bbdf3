"""Sums of independent random numbers, one for each question, and how extreme a given sum is.

The tests of this package share this null hypothesis: given a question's outcomes, chance alone
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
"""The values that a question may add to the sum, ascending and >= 0, and their probabilities."""

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
    if size == 1:  # the usual case, and faster this way
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
    """Return twice the probability of a sum as extreme as `observed`, on its side; at most 1.

    Exact where that is fast (`_EXACT`: thousands of questions that are right or wrong, a hundred
    graded ones), else by the normal approximation.

    Parameters
    ----------
    draws
        One for each question, independent of each other.
    observed
        A possible sum of the draws.
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
