"""The state of a fit; replaced as a whole, so that other threads may decide meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from shared_core.arrays import Rows, Scores, Vectors
from shared_core.gating.background import Background
from shared_core.gating.foreign_questions import KnownText
from shared_core.gating.levels import Levels
from shared_core.gating.policies import Policy


@dataclass(frozen=True)
class FitState:
    """Contexts, their pseudo-queries' similarities, and the background.

    Attributes
    ----------
    background
        The foreign questions, if any.
    known
        A text by which to recognise the embedding model, if any.
    numbers
        Context id -> number; numbers are never reused.
    following
        The next number.
    owners, similarities
        Number of each pseudo-query's context, and its similarity to it, shape (n,).
    dim
        Dimension of the vectors; None before the first.
    """

    background: Background | None
    known: KnownText | None
    numbers: Mapping[str, int] = field(default_factory=dict)
    following: int = 0
    owners: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    similarities: Scores = field(default_factory=lambda: np.empty(0))
    dim: int | None = None
    _levels: dict[Policy, Levels] = field(default_factory=dict, init=False)

    def extended(
        self, ids: Sequence[str], contexts: Vectors, rows: Rows, queries: Vectors
    ) -> FitState:
        """Return this with new contexts, and pseudo-queries of the contexts in `rows`."""
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

    def without(self, ids: Iterable[str]) -> FitState:
        """Return this without the contexts among `ids`."""
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
        """Return the highest similarity of each foreign question, ascending; empty without any."""
        if self.background is None or not self.numbers:
            return np.empty(0)
        return np.sort(self.background.highest())

    def foreign_level(self) -> float | None:
        """Return the median of `highest_of_background`; None if it is empty."""
        if self.background is None or not self.numbers:
            return None
        return self.background.median()

    def levels(self, policy: Policy) -> Levels:
        """Return the levels under a policy, cached; see `VectorCandidates.levels`."""
        if policy not in self._levels:
            try:
                foreign = self.foreign_level()
            except ValueError:
                if policy == "calibrated":
                    raise
                foreign = None  # the edge needs none; without it there is no probability
            self._levels[policy] = Levels.of(np.sort(self.similarities), foreign, policy)
        return self._levels[policy]
