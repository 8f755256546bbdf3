"""The policies of CAG: which statistic of the pseudo-queries a query must reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Literal, TypeAlias

import numpy as np

from shared_core.arrays import Scores

Name: TypeAlias = Literal[
    "calibrated", "density", "minimum", "mean", "median", "lower_quartile", "upper_quartile"
]

Policy: TypeAlias = Name | float
"""A name, or a number in (0, 1): that quantile of the pseudo-queries' similarities."""

DENSITY = 0.95
"""Share of the pseudo-queries inside the interval of ``"density"``, as in the paper."""


def shortest_interval(similarities: Scores, share: float = DENSITY) -> tuple[float, float]:
    """Return the shortest interval that holds a share of the similarities.

    Parameters
    ----------
    similarities
        Ascending, shape (n,), n >= 1.
    share
        In (0, 1].
    """
    count = math.ceil(share * similarities.size)
    widths = similarities[count - 1 :] - similarities[: similarities.size - count + 1]
    start = int(widths.argmin())
    return float(similarities[start]), float(similarities[start + count - 1])


STATISTICS: Mapping[Name, tuple[int, Callable[[Scores], float]]] = {
    "density": (20, lambda values: shortest_interval(values)[0]),
    "minimum": (1, lambda values: float(values[0])),
    "mean": (2, lambda values: float(values.mean())),
    "median": (2, lambda values: float(np.median(values))),
    "lower_quartile": (4, lambda values: float(np.quantile(values, 0.25))),
    "upper_quartile": (4, lambda values: float(np.quantile(values, 0.75))),
    "calibrated": (10, lambda values: float(np.median(values))),
}
"""Policy -> how many pseudo-queries it needs, and its statistic of their ascending similarities.

For ``calibrated`` it is the upper of the two levels that the edge is between.
"""


def check_policy(policy: Policy) -> Policy:
    """Return the policy, or raise ValueError."""
    if isinstance(policy, str):
        if policy not in STATISTICS:
            raise ValueError(
                f"policy must be one of {', '.join(STATISTICS)} or a quantile, got {policy!r}"
            )
        return policy
    if isinstance(policy, bool) or not isinstance(policy, Real):
        raise ValueError(f"policy must be a name or a quantile, got {policy!r}")
    if not 0 < policy < 1:
        raise ValueError(f"a quantile must lie between 0 and 1, got {policy}")
    return float(policy)


def statistic(similarities: Scores, policy: Policy) -> float:
    """Return a policy's statistic of the pseudo-queries' similarities.

    Parameters
    ----------
    similarities
        Ascending, shape (n,).
    policy
        As checked by `check_policy`.

    Raises
    ------
    ValueError
        If there are fewer similarities than the statistic needs: 20 for the 95% density, as one
        in twenty is outside; 1 / min(q, 1 - q) for a quantile q.
    """
    if isinstance(policy, str):
        needed, of = STATISTICS[policy]
    else:
        needed = math.ceil(1 / min(policy, 1 - policy) - 1e-9)
        level = policy

        def of(values: Scores) -> float:
            return float(np.quantile(values, level))

    if similarities.size < needed:
        raise ValueError(
            f"the policy {policy!r} needs at least {needed} pseudo-queries, got "
            f"{similarities.size}: fit more, or use policy='minimum'"
        )
    return of(similarities)
