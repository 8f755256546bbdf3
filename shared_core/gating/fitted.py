"""What a gate has been fitted on; replaced as a whole, so that one may decide meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shared_core.arrays import Rows, Scores, Vectors
from shared_core.gating.background import Background
from shared_core.gating.foreign import Known
from shared_core.gating.levels import Levels
from shared_core.gating.policies import Policy


@dataclass(frozen=True)
class Fitted:
    """Contexts, their pseudo-queries' similarities, and the background.

    Attributes
    ----------
    background
        The foreign questions, if any.
    known
        What tells the embedding model, if any text of it is known.
    numbers
        Context id -> number; numbers are never used again.
    following
        The next number.
    owners, similarities
        Number of each pseudo-query's context, and its similarity to it, shape (n,).
    dim
        Dimension of the vectors; None as long as there were none.
    """

    background: Background | None
    known: Known | None
    numbers: Mapping[str, int] = field(default_factory=dict)
    following: int = 0
    owners: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    similarities: Scores = field(default_factory=lambda: np.empty(0))
    dim: int | None = None
    _levels: dict[Policy, Levels] = field(default_factory=dict, init=False)

    def extended(
        self, ids: Sequence[str], contexts: Vectors, rows: Rows, queries: Vectors
    ) -> Fitted:
        """Return this with new contexts, and pseudo-queries of the context rows `rows`."""
        numbers = np.arange(self.following, self.following + len(ids))
        own = np.vecdot(queries, contexts[rows]).astype(np.float64)
        background = self.background
        return replace(
            self,
            background=None if background is None else background.extended(numbers, contexts),
            numbers={**self.numbers, **dict(zip(ids, numbers.tolist(), strict=True))},
            following=self.following + len(ids),
            owners=np.concatenate([self.owners, numbers[rows]]),
            similarities=np.concatenate([self.similarities, own]),
            dim=contexts.shape[1],
        )

    def without(self, ids: Iterable[str]) -> Fitted:
        """Return this without those of `ids` that are there."""
        gone = {id: self.numbers[id] for id in ids if id in self.numbers}
        if not gone:
            return self
        numbers = np.fromiter(gone.values(), np.intp, len(gone))
        kept = ~np.isin(self.owners, numbers)
        background = self.background
        return replace(
            self,
            background=None if background is None else background.without(numbers),
            numbers={id: number for id, number in self.numbers.items() if id not in gone},
            owners=self.owners[kept],
            similarities=self.similarities[kept],
        )

    def highest_of_background(self) -> Scores:
        """Return the highest similarity of each foreign question, ascending; none without."""
        if self.background is None or not self.numbers:
            return np.empty(0)
        return np.sort(self.background.highest())

    def foreign(self) -> float | None:
        """Return the median over the foreign questions of the highest similarity; None without."""
        if self.background is None or not self.numbers:
            return None
        return self.background.median()

    def levels(self, policy: Policy) -> Levels:
        """Return the levels under a policy, computed once; see `VectorCandidates.levels`."""
        if policy not in self._levels:
            self._levels[policy] = Levels.of(np.sort(self.similarities), self.foreign(), policy)
        return self._levels[policy]
