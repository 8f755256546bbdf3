"""What the gate says of a query, and why."""

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
        The query's highest similarity to a passage; None where there was nothing to compare.
    statistic
        Lower edge of the fitted distribution under the policy (CAG's P), in units of similarity;
        None where there was nothing to compare.
    interval
        From the statistic to the highest similarity of a pseudo-query. Only the lower end is a
        limit: a higher similarity is inside as well. None where there was nothing to compare.
    margin
        ``similarity - statistic - threshold``; not negative where the similarity alone decides to
        retrieve. None without a similarity.
    probability
        That the corpus answers the query, in [0, 1], taking both answers as equally likely
        beforehand; None where no background was fitted.
    policy
        Name of the policy.
    reason
        One sentence for a person.
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
        """Return the decision where the index holds nothing to retrieve."""
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
        # Not dataclasses.asdict, which copies deeply: a decision is made for every query.
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return told | {"interval": None if self.interval is None else [*self.interval]}
