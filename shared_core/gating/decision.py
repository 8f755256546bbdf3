"""The decision of the retrieval gate, and the policies that it follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from shared_core.arrays import Scores

Policy: TypeAlias = Literal[
    "calibrated", "density", "minimum", "mean", "median", "lower_quartile", "upper_quartile"
]
"""By what of the pseudo-queries' similarities a query is judged; all but the first as in CAG."""

DENSITY = 0.95
"""Share of the pseudo-queries inside the interval of ``"density"``, as in the paper."""


def density_edge(similarities: Scores) -> float:
    """Return the lower end of the shortest interval that holds `DENSITY` of the similarities.

    They are ascending, shape (n,), n >= 1.
    """
    count = math.ceil(DENSITY * similarities.size)
    widths = similarities[count - 1 :] - similarities[: similarities.size - count + 1]
    return float(similarities[widths.argmin()])


STATISTICS: Mapping[Policy, tuple[int, Callable[[Scores], float]]] = {
    "density": (20, density_edge),
    "minimum": (1, np.min),
    "mean": (2, np.mean),
    "median": (2, np.median),
    "lower_quartile": (4, partial(np.quantile, q=0.25)),
    "upper_quartile": (4, partial(np.quantile, q=0.75)),
    "calibrated": (10, np.median),
}
"""Policy -> how many pseudo-queries it needs, and its statistic of their ascending similarities.

Density needs 20, as one in twenty is outside. For calibrated it is the upper of the two levels that
the edge is between.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalDecision:
    """Whether a query is to be answered with retrieved context.

    Attributes
    ----------
    retrieve
        True: retrieve. False: answer from what the model knows.
    similarity
        The query's highest similarity to a passage; None without passages.
    statistic
        Lower edge of the fitted distribution under the policy (CAG's P), in units of similarity;
        None without passages.
    interval
        From the statistic to the highest similarity of a pseudo-query. Only the lower end is a
        limit: a higher similarity is inside as well. None without passages.
    margin
        ``similarity - statistic - threshold``; at least 0 if the similarity alone decides to
        retrieve. None without passages.
    policy
        Name of the policy.
    reason
        One sentence for people.
    """

    retrieve: bool
    similarity: float | None = None
    statistic: float | None = None
    interval: tuple[float, float] | None = None
    margin: float | None = None
    policy: str
    reason: str

    def explain(self) -> dict[str, Any]:
        """Return the decision as a JSON-able dictionary, for metadata and traces."""
        # Not dataclasses.asdict: its deep copy costs time with every query.
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return values | {"interval": None if self.interval is None else [*self.interval]}
