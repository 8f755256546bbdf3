"""Telling when the questions that come in are no longer those the gate was fitted for."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from typing import Any

from shared_core.forking import forkable
from shared_core.gating.candidates import VectorCandidates

WINDOW = 200

LEAST_INSIDE = 0.1


class DriftMonitor:
    """Watches the similarities of live queries and warns once they leave the fitted distribution.

    Any mixture of questions inside and outside the corpus lies between the two levels of the
    fit. What no mixture explains is told: nearly everything lies outside, or the median lies
    above the nearest pseudo-query. Either the corpus, the embedding model or the questions have
    changed. It warns once, and again only after the similarities have come back. Threads may
    share one.

    Parameters
    ----------
    candidates
        The gate.
    window
        Queries that are looked at, the latest ones, >= 20. There is no warning before so many.
    least_inside
        Share of them, in [0, 1], that must lie inside.

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
        self._observing = forkable(threading.Lock())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, by ``copy`` or ``pickle``, is made of; each watches by itself."""
        with self._observing:
            kept = {**vars(self), "_seen": self._seen.copy()}
        del kept["_observing"]
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._observing = forkable(threading.Lock())

    def observe(self, similarity: float) -> bool:
        """Take a live query's highest similarity, and return whether they have drifted.

        Warns with a `UserWarning` when they begin to.
        """
        with self._observing:
            self._seen.append(float(similarity))
            if len(self._seen) < (self._seen.maxlen or 0):
                return False
            what = self._what_tells()
            begins = what is not None and not self._drifted
            self._drifted = what is not None
        if begins:
            warnings.warn(
                f"the last {self._seen.maxlen} queries have left the fitted distribution: {what}; "
                "fit anew if the corpus, the embedding model or the questions have changed",
                stacklevel=2,
            )
        return what is not None

    def _what_tells(self) -> str | None:
        levels = self.candidates.levels
        edge = levels.edge + self.candidates.threshold
        inside = sum(value >= edge for value in self._seen) / len(self._seen)
        middle = sorted(self._seen)[len(self._seen) // 2]
        if inside < self.least_inside:
            return f"only {inside:.0%} of them reach the edge of {edge:.3f}"
        if middle > levels.upper:
            return f"their median {middle:.3f} lies above every pseudo-query ({levels.upper:.3f})"
        return None
