"""The decision of the retrieval gate: policies, fitted levels, and what a query gets by them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np

from shared_core.arrays import Scores

Name: TypeAlias = Literal[
    "calibrated", "density", "minimum", "mean", "median", "lower_quartile", "upper_quartile"
]

Policy: TypeAlias = Name | float
"""A name, or a number in (0, 1): that quantile of the pseudo-queries' similarities."""

DENSITY = 0.95
"""Share of the pseudo-queries inside the interval of ``"density"``, as in the paper."""

SHARE = 0.4
"""Position of an edge between the everyday questions (0) and the pseudo-queries (1).

Generated questions repeat the words of their context, so they are about as similar to it as a text
can be. People ask for one detail in other words; their questions are anywhere down to the foreign
ones. All levels, and the edge with them, move with the corpus, its size and the embedding model.
Accuracy is flat around the constants: ``python -m benchmarks.gating``.
"""

NEIGHBOURING = 0.99
"""Share of the questions about other parts of the corpus below their level."""

RAISE = 0.5
"""How far the edge is raised towards that level, where it lies above."""

STEEPNESS = 8.0
"""Change in the log-odds that the corpus answers, from the foreign level to the near level."""

COVERAGE_WEIGHT = 4.0
"""Change in the log-odds by a share of 1 of a query's words beyond the middle."""

COVERAGE_MIDDLE = 0.5
"""Share of a query's words up to which they are no evidence.

People who use other words than the corpus does would be refused by those that are missing.
"""

CONSTANT = 1e-6
"""Spread below which similarities differ only by rounding."""


def density_edge(similarities: Scores) -> float:
    """Return the lower end of the shortest interval that holds `DENSITY` of the similarities.

    They are ascending, shape (n,), n >= 1.
    """
    count = math.ceil(DENSITY * similarities.size)
    widths = similarities[count - 1 :] - similarities[: similarities.size - count + 1]
    return float(similarities[widths.argmin()])


STATISTICS: Mapping[Name, tuple[int, Callable[[Scores], float]]] = {
    "density": (20, density_edge),
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
    needed, of = STATISTICS[policy] if isinstance(policy, str) else _quantile(policy)
    if similarities.size < needed:
        raise ValueError(
            f"the policy {policy!r} needs at least {needed} pseudo-queries, got "
            f"{similarities.size}: fit more, or use policy='minimum'"
        )
    return of(similarities)


def _quantile(share: float) -> tuple[int, Callable[[Scores], float]]:
    needed = math.ceil(1 / min(share, 1 - share) - 1e-9)
    return needed, lambda values: float(np.quantile(values, share))


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
    probability
        Probability that the corpus answers the query, in [0, 1], with even prior odds; None
        without foreign questions.
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
    probability: float | None = None
    policy: str
    reason: str

    def explain(self) -> dict[str, Any]:
        """Return the decision as a JSON-able dictionary, for metadata and traces."""
        # Not dataclasses.asdict: its deep copy costs time with every query.
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return values | {"interval": None if self.interval is None else [*self.interval]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The fitted levels, in units of similarity.

    Attributes
    ----------
    policy
        See `Policy`.
    edge
        Lower edge of the distribution under the policy. For ``"calibrated"`` it is ::

            everyday = foreign + 0.4 * (near - foreign)
            edge = max(everyday, (everyday + neighbouring) / 2)
    near
        Median similarity of a pseudo-query to its own context.
    upper
        Highest similarity of a pseudo-query to its own context.
    foreign
        Median over the foreign questions of the highest similarity to the corpus; None without
        any.
    neighbouring
        What 99% of the pseudo-queries of one part of the corpus stay below, put to the rest of it.
        None where it is not known: then it moves nothing.
    """

    policy: Policy
    edge: float
    near: float
    upper: float
    foreign: float | None
    neighbouring: float | None

    @classmethod
    def of(
        cls,
        similarities: Scores,
        foreign: float | None,
        neighbouring: float | None,
        policy: Policy,
    ) -> Levels:
        """Return the levels of ascending similarities and of foreign questions; see `Levels`."""
        edge = statistic(similarities, policy)
        if similarities.size > 1 and similarities[-1] - similarities[0] < CONSTANT:
            warnings.warn(
                f"all {similarities.size} pseudo-queries have the similarity "
                f"{similarities[0]:.3f} to their contexts: are they copies of them?",
                stacklevel=4,
            )
        found = cls(
            policy=policy,
            edge=edge,
            near=float(np.median(similarities)),
            upper=float(similarities[-1]),
            foreign=foreign,
            neighbouring=neighbouring,
        )
        if policy != "calibrated":
            return found
        if found.calibrated is None:
            raise ValueError(found.fault)
        return replace(found, edge=found.calibrated)

    @property
    def calibrated(self) -> float | None:
        """The calibrated edge, whatever the policy; None where near and foreign are not apart."""
        if self.foreign is None or self.near <= self.foreign:
            return None
        edge = self.foreign + SHARE * (self.near - self.foreign)
        if self.neighbouring is None:
            return edge
        return max(edge, (1 - RAISE) * edge + RAISE * self.neighbouring)

    @property
    def fault(self) -> str | None:
        """What is wrong if pseudo-queries are no nearer than foreign questions; None if nothing."""
        if self.foreign is None or self.calibrated is not None:
            return None
        return (
            f"pseudo-queries have a median similarity of {self.near:.3f} to their contexts, no "
            f"more than the {self.foreign:.3f} of questions foreign to the corpus: give "
            "pseudo-queries of these contexts, and negatives= that the corpus does not answer"
        )

    def probability(self, similarity: float, coverage: float | None = None) -> float | None:
        """Return the probability that the corpus answers, with even prior odds.

        A logistic curve that is one half at the calibrated edge, whatever the policy; None without
        foreign questions, or if the pseudo-queries are no nearer than these.
        """
        if self.calibrated is None:
            return None
        log_odds = self._log_odds(similarity - self.calibrated, coverage)
        return 0.5 * (1 + math.tanh(log_odds / 2))

    def decide(
        self, similarity: float, threshold: float, coverage: float | None
    ) -> RetrievalDecision:
        """Compare; see `VectorCandidates.decide`."""
        margin = similarity - self.edge - threshold
        retrieve, words = margin >= 0, ""
        if coverage is not None:
            retrieve = self._log_odds(margin, coverage) >= 0
            words = f", with {coverage:.0%} of its words there"
        bar = f"{self.edge:.3f}" + (f" {threshold:+.3f}" if threshold else "")
        return RetrievalDecision(
            retrieve=retrieve,
            similarity=similarity,
            statistic=self.edge,
            interval=(self.edge, max(self.edge, self.upper)),
            margin=margin,
            probability=self.probability(similarity, coverage),
            policy=str(self.policy),
            reason=(
                f"similarity {similarity:.3f} is {'not below' if margin >= 0 else 'below'} the "
                f"{self.policy} edge {bar}{words}: "
                f"{'retrieve' if retrieve else 'answer without context'}"
            ),
        )

    def _log_odds(self, margin: float, coverage: float | None) -> float:
        """Return the log-odds of a margin in similarity and, if known, a coverage."""
        if coverage is not None and not 0 <= coverage <= 1:
            raise ValueError(f"coverage must lie in [0, 1], got {coverage}")
        if self.foreign is None:
            raise ValueError(
                "coverage is weighed against foreign questions, and there are none: fit with embed="
            )
        if self.fault is not None:
            raise ValueError(self.fault)
        words = COVERAGE_WEIGHT * max(0.0, (coverage or 0.0) - COVERAGE_MIDDLE)
        return STEEPNESS * margin / (self.near - self.foreign) + words
