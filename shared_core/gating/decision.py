"""The decision of the gate about a query, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
        without a background.
    policy
        Name of the policy.
    reason
        One sentence for people.
    """

    retrieve: bool
    similarity: float | None
    statistic: float | None
    interval: tuple[float, float] | None
    margin: float | None
    probability: float | None
    policy: str
    reason: str

    @classmethod
    def without_passages(cls, policy: str) -> RetrievalDecision:
        """Return the decision for an index without passages."""
        return cls(
            retrieve=False,
            similarity=None,
            statistic=None,
            interval=None,
            margin=None,
            probability=None,
            policy=policy,
            reason="there is no passage to retrieve: answer without context",
        )

    def explain(self) -> dict[str, Any]:
        """Return the decision as a JSON-able dictionary, for metadata and traces."""
        # Not dataclasses.asdict: its deep copy costs time with every query.
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return values | {"interval": None if self.interval is None else [*self.interval]}
