"""Analysing a probe while it runs, without spoiling its error rate.

Looking at a 95 % interval five times, and stopping when it excludes a value, is wrong in one run of
seven. Pocock's design uses a wider interval at every look, so that all looks together are wrong no
more often than a single look would be. Its boundary is integrated here: SciPy's multivariate normal
takes 1.8 s for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from shared_core.arrays import Scores
from shared_core.checking import check_counts_of, check_fractions
from shared_core.evaluation.intervals import Statistic, bootstrap_interval

FEWEST = 20
"""Fewest questions before the first look, and between two: fewer move an interval by luck alone."""
MOST = 1000
"""Bounds from here on are not written out: they come of a ratio whose denominator is all but 0."""


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

    Raises
    ------
    ValueError
        If one of them is out of range.
    """

    total: int
    count: int = 5
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_counts_of(self, {"total": 1, "count": 1})
        check_fractions({"confidence": self.confidence})

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

        Pocock, Biometrika 64 (1977): the same level at every look. The estimate is taken as a
        sum of independent questions, normal by the first look.
        """
        normal = NormalDist()
        allowed = 1 - self.confidence
        # One look alone would be too narrow; as many looks as if independent (Bonferroni), too wide
        low, high = (-normal.inv_cdf(allowed / 2 / looks) for looks in (1, len(self.at)))
        while high - low > 1e-9:
            middle = (low + high) / 2
            if _chance_of_crossing(middle, self.at) > allowed:
                low = middle
            else:
                high = middle
        return 2 * normal.cdf(high) - 1


def interim_decision(
    interval: tuple[float, float],
    *,
    best_case: tuple[float, float] | None = None,
    threshold: float = 1.0,
) -> str | None:
    """Return why no more questions need be asked, in a sentence; None to go on.

    They need not if the interval lies above the threshold, or below it, or if no outcome of the
    remaining questions could bring it above.

    Parameters
    ----------
    interval
        Interval at this analysis, of level `InterimAnalyses.confidence_at`; NaN bounds decide
        nothing.
    best_case
        What `best_case_interval` gives; None at the last analysis, where nothing remains.
    threshold
        What the index must exceed for the gate to open.
    """
    lower, upper = interval
    span = f"the interval {bound_text(lower, threshold)} to {bound_text(upper, threshold)}"
    if lower > threshold:
        return f"{span} lies above {threshold}"
    if upper < threshold:
        return f"{span} lies below {threshold}"
    if best_case is not None and best_case[0] <= threshold:
        return (
            f"{span} could not rise above {threshold} with the remaining questions: even if every "
            f"one were right at the edges and wrong in the middle, it would begin at "
            f"{bound_text(best_case[0], threshold)}"
        )
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


def best_case_interval(
    outcomes: Scores,
    statistic: Statistic,
    *,
    edges: Sequence[int],
    middle: Sequence[int],
    remaining: int,
    confidence: float,
    seed: int = 0,
) -> tuple[float, float]:
    """Interval after all questions, if each that remains is right at the edges, wrong in between.

    No other outcome of the remaining questions gives a higher lower bound of an index that rises
    with the edges and falls with the middle: question by question it can only be lower, in every
    resample.

    Parameters
    ----------
    outcomes
        How right the questions so far were, shape (n, k), in [0, 1], n >= 2.
    statistic, seed
        As in `bootstrap_interval`.
    edges, middle
        Columns of the top and the bottom, and of the middle; a column of both counts as middle.
    remaining
        Number of questions that remain, >= 0.
    confidence
        Level of the interval: `InterimAnalyses.confidence_at`.

    Raises
    ------
    ValueError
        If an argument of `bootstrap_interval` is out of range.
    """
    best = np.zeros(outcomes.shape[1])
    best[[*edges]] = 1.0
    best[[*middle]] = 0.0
    completed = np.vstack([outcomes, np.tile(best, (remaining, 1))])
    return bootstrap_interval(completed, statistic, confidence=confidence, seed=seed)


@cache
def _quadrature() -> tuple[Scores, Scores]:
    """Return nodes and weights; an eigenproblem, which an import should not solve."""
    return np.polynomial.legendre.leggauss(64)


def _chance_of_crossing(bound: float, at: Sequence[int]) -> float:
    """Probability that a sum of `at` standard normals leaves ``+- bound * sqrt(at)`` at some look.

    Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132 (1969): the density of the sums that have
    stayed inside is carried from look to look by Gauss-Legendre quadrature.
    """
    inside, mass = np.zeros(1), np.ones(1)
    nodes, weights = _quadrature()
    for before, now in zip((0, *at), at, strict=False):
        sums = bound * now**0.5 * nodes
        step = (sums[:, None] - inside) / (now - before) ** 0.5
        density: Scores = np.exp(-(step**2) / 2) @ mass / (2 * np.pi * (now - before)) ** 0.5
        inside, mass = sums, density * bound * now**0.5 * weights
    return 1 - float(mass.sum())
