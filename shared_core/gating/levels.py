"""The levels that a query's similarity is compared with, and the comparison."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Scores
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.policies import Policy, statistic

SHARE = 0.4
"""Position of the calibrated edge between the foreign questions (0) and the pseudo-queries (1).

Generated questions repeat the words of their context, so they are about as similar to it as a text
can be. People ask for one detail in other words; their questions are anywhere down to the foreign
ones. Both levels, and the edge with them, move with the corpus, its size and the embedding model.
Foreign questions spread about two thirds as widely as people's, so the point equally unlikely for
both is below the middle. Accuracy is flat around it, and a share chosen on other collections does
no better: ``python -m benchmarks.gating --parts fraction``.
"""

STEEPNESS = 8.0
"""Change in the log-odds that the corpus answers, from the foreign level to the near level."""

COVERAGE_WEIGHT = 3.0
"""Change in the log-odds from a query none of whose words occur to one whose words all do."""

COVERAGE_MIDDLE = 0.3
"""Share of a query's words that is evidence neither for the corpus nor against it."""

CONSTANT = 1e-6
"""Spread below which similarities differ only by rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The fitted levels, in units of similarity.

    Attributes
    ----------
    policy
        See `Policy`.
    edge
        Lower edge of the distribution under the policy. For ``"calibrated"`` it is ::

            edge = foreign + 0.4 * (near - foreign)
    near
        Median similarity of a pseudo-query to its own context.
    upper
        Highest similarity of a pseudo-query to its own context.
    foreign
        Median over the foreign questions of the highest similarity to the corpus; None if it is
        unknown.
    """

    policy: Policy
    edge: float
    near: float
    upper: float
    foreign: float | None

    @classmethod
    def of(cls, similarities: Scores, foreign: float | None, policy: Policy) -> Levels:
        """Return the levels of ascending similarities and a foreign level; see `Levels`."""
        edge = statistic(similarities, policy)
        if similarities.size > 1 and similarities[-1] - similarities[0] < CONSTANT:
            warnings.warn(
                f"all {similarities.size} pseudo-queries have the similarity "
                f"{similarities[0]:.3f} to their contexts: are they copies of them?",
                stacklevel=4,
            )
        near = float(np.median(similarities))
        if policy == "calibrated":
            if foreign is None or near <= foreign:
                raise ValueError(_not_apart(near, foreign))
            edge = foreign + SHARE * (near - foreign)
        return cls(
            policy=policy, edge=edge, near=near, upper=float(similarities[-1]), foreign=foreign
        )

    @property
    def fault(self) -> str | None:
        """What is wrong if pseudo-queries are no nearer than foreign questions; None if nothing."""
        if self.foreign is None or self.near > self.foreign:
            return None
        return _not_apart(self.near, self.foreign)

    def probability(self, similarity: float, coverage: float | None = None) -> float | None:
        """Return the probability that the corpus answers, with even prior odds.

        A logistic curve that is one half at the calibrated edge, whatever the policy; None without
        a background, or if the pseudo-queries are no nearer than it.
        """
        if self.foreign is None or self.near <= self.foreign:
            return None
        edge = self.foreign + SHARE * (self.near - self.foreign)
        log_odds = self._log_odds(similarity - edge, coverage)
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
        if coverage is None:
            words = 0.0
        elif 0 <= coverage <= 1:
            words = COVERAGE_WEIGHT * (coverage - COVERAGE_MIDDLE)
        else:
            raise ValueError(f"coverage must lie in [0, 1], got {coverage}")
        if self.foreign is None:
            raise ValueError(
                "coverage is weighed against a background, and there is none or it is not known "
                "any more: fit with embed="
            )
        if self.fault is not None:
            raise ValueError(self.fault)
        return STEEPNESS * margin / (self.near - self.foreign) + words


def _not_apart(near: float, foreign: float | None) -> str:
    level = "none" if foreign is None else f"{foreign:.3f}"
    return (
        f"pseudo-queries have a median similarity of {near:.3f} to their contexts, no more than "
        f"the {level} of questions foreign to the corpus: give pseudo-queries of these contexts, "
        "and negatives= that the corpus does not answer"
    )
