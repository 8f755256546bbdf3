"""Analysing a probe while it runs, without spoiling its error rate.

Looking at a 95 % interval five times, and stopping when it excludes a value, is wrong in one run of
seven. Pocock's design uses a wider interval at every look, so that all looks together are wrong no
more often than a single look would be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

FEWEST = 20
"""Fewest questions before the first look, and between two: fewer move an interval by luck alone."""
MOST = 1000
"""Bounds from here on are not written out: they come of a ratio whose denominator is all but 0."""

_LEVELS = (0.05, 0.0294, 0.0221, 0.0182, 0.0158, 0.0142, 0.0130, 0.0120, 0.0112, 0.0106)
"""Level of each of 1 to 10 looks, 0.05 in all (Pocock, Biometrika 64, 1977, table 1)."""


@dataclass(frozen=True, kw_only=True)
class InterimAnalyses:
    """When to look at accumulating questions, and how wide an interval to use.

    Attributes
    ----------
    total
        Number of questions if no look stops the run, >= 1.
    count
        Largest number of looks, >= 1.
    confidence
        Probability that no look's interval excludes the true value, in (0, 1).
    """

    total: int
    count: int = 5
    confidence: float = 0.95

    @cached_property
    def at(self) -> tuple[int, ...]:
        """Numbers of questions at which to look, evenly spaced, rising; the last is `total`.

        There are fewer than `count` if fewer than 20 questions would lie between two.
        """
        count = max(1, min(self.count, self.total // FEWEST))
        return tuple(self.total * look // count for look in range(1, count + 1))

    @cached_property
    def confidence_at(self) -> float:
        """Level of the interval at each look, in (0, 1), and of the one reported at the end.

        It is the same at every look. At 95 % and up to 10 looks it is Pocock's, who takes the
        estimate for a sum of independent questions, normal by the first look, and looks for evenly
        spaced; else ``(1 - confidence) / looks`` is allowed at each (Bonferroni), which is wider
        than need be.
        """
        looks = len(self.at)
        if self.confidence == 0.95 and looks <= len(_LEVELS):
            return 1 - _LEVELS[looks - 1]
        return 1 - (1 - self.confidence) / looks


def interim_decision(interval: tuple[float, float], *, threshold: float = 1.0) -> str | None:
    """Return why no more questions need be asked, in a sentence; None to go on.

    They need not if the interval lies above the threshold, or below it.

    Parameters
    ----------
    interval
        Interval at this analysis, of level `InterimAnalyses.confidence_at`; NaN bounds decide
        nothing.
    threshold
        What the index must exceed for the gate to open.
    """
    lower, upper = interval
    span = f"the interval {bound_text(lower, threshold)} to {bound_text(upper, threshold)}"
    if lower > threshold:
        return f"{span} lies above {threshold}"
    if upper < threshold:
        return f"{span} lies below {threshold}"
    return None


def bound_text(bound: float, threshold: float = 1.0) -> str:
    """Return an index or a bound for a reader: ``2.222``, or ``above 1,000`` from there on.

    It has three decimals, or as many as tell it from the threshold.
    """
    if bound >= MOST:
        return f"above {MOST:,}"
    digits = 3
    while bound != threshold and f"{bound:.{digits}f}" == f"{threshold:.{digits}f}":
        digits += 1
    return f"{bound:.{digits}f}"
