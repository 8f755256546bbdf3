"""What a pipeline returns for a question: passages, and what each of them scored."""

from __future__ import annotations

from dataclasses import dataclass

from shared_core.types import Passage


@dataclass(frozen=True, kw_only=True)
class RankedPassages:
    """The passages of one question, best first.

    Attributes
    ----------
    passages
        The passages.
    scores
        What each was ranked by, higher is better; None where only the order is known.
    """

    passages: tuple[Passage, ...]
    scores: tuple[float, ...] | None = None

    def top(self, k: int) -> RankedPassages:
        """Return the best `k`, or as many as there are."""
        scores = None if self.scores is None else self.scores[:k]
        return RankedPassages(passages=self.passages[:k], scores=scores)
