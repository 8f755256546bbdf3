"""Detecting when incoming queries are no longer those the gate was fitted for."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from typing import Any

from shared_core.gating.candidates import VectorCandidates

WINDOW = 200
"""Latest queries; their share inside then has a standard error of at most 0.04."""

LEAST_INSIDE = 0.1
"""Share inside below which the queries have drifted; 0 would let a few hits hide a drift."""


class DriftMonitor:
    """Watches the similarities of live queries and warns once they leave the fitted distribution.

    Any mixture of queries inside and outside the corpus is between the two levels of the fit. It
    warns of what no mixture explains: nearly all queries are outside, or their median is above
    the most similar pseudo-query. Then the corpus, the embedding model or the queries have
    changed. It warns once, and again only after the similarities have returned to normal.
    Thread-safe.

    Parameters
    ----------
    candidates
        The gate.
    window
        Number of latest queries to consider, >= 20. It does not warn before it has seen as many.
    least_inside
        Share of them that must be inside, in [0, 1].

    Raises
    ------
    ValueError
        If an option is out of range.
    """

    def __init__(
        self,
        candidates: VectorCandidates,
        *,
        window: int = WINDOW,
        least_inside: float = LEAST_INSIDE,
    ) -> None:
        if window < 20:
            raise ValueError(f"window must be at least 20, got {window}")
        if not 0 <= least_inside <= 1:
            raise ValueError(f"least_inside must lie in [0, 1], got {least_inside}")
        self.candidates = candidates
        self.least_inside = least_inside
        self._seen: deque[float] = deque(maxlen=window)
        self._drifted = False
        self._observing = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``; each copy observes on its own."""
        with self._observing:
            kept = {**vars(self), "_seen": self._seen.copy()}
        del kept["_observing"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._observing = threading.Lock()

    def observe(self, similarity: float) -> bool:
        """Record the highest similarity of a live query; return whether the queries have drifted.

        Gives a `UserWarning` when a drift begins.
        """
        with self._observing:
            self._seen.append(float(similarity))
            if len(self._seen) < (self._seen.maxlen or 0):
                return False
            reason = self._reason()
            begins = reason is not None and not self._drifted
            self._drifted = reason is not None
        if begins:
            warnings.warn(
                f"the last {self._seen.maxlen} queries have left the fitted distribution: "
                f"{reason}; fit the gate again if the corpus, the embedding model or the queries "
                "have changed",
                stacklevel=2,
            )
        return reason is not None

    def _reason(self) -> str | None:
        levels = self.candidates.levels
        edge = levels.edge + self.candidates.threshold
        inside = sum(value >= edge for value in self._seen) / len(self._seen)
        middle = sorted(self._seen)[len(self._seen) // 2]
        if inside < self.least_inside:
            return f"only {inside:.0%} of them reach the edge of {edge:.3f}"
        if middle > levels.upper:
            return f"their median {middle:.3f} is above every pseudo-query ({levels.upper:.3f})"
        return None
