"""Outcomes with a known truth, in place of a model, through the statistics and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from shared_core.comparison.result import Verdict
from shared_core.comparison.statistics import Testing
from shared_core.comparison.verdict import overall_verdict, setting_verdict

STRATEGIES = ("sequential", "shuffle", "inverse", "u_shape")
SETTINGS = 2


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is true of the outcomes.

    Questions differ in how hard they are. By the chance `same` an answer does not depend on the
    order, as is usual; otherwise each order is right by the chance `right`, plus its gain.
    """

    gains: Mapping[str, float] = field(default_factory=dict)
    same: float = 0.5
    right: float = 0.5
    shuffles: int = 3

    def draw(self, rng: np.random.Generator, n: int) -> dict[str, list[list[float]]]:
        """Return the outcomes of each strategy on `n` questions, order by order."""
        easy = rng.random((n, 1)) < 0.6
        moved = rng.random((n, 1)) >= self.same
        outcomes = {}
        for name in STRATEGIES:
            draws = self.shuffles if name == "shuffle" else 1
            chance = self.right + self.gains.get(name, 0.0) / (1 - self.same)
            tossed = rng.random((n, draws)) < chance
            outcomes[name] = np.where(moved, tossed, easy).astype(float).tolist()
        return outcomes


def testing_with(seed: int, *, resamples: int) -> Testing:
    """Return the usual way to judge, with fewer resamples."""
    return Testing(confidence=0.95, power=0.8, effect=0.03, seed=seed, resamples=resamples)


def verdict(seed: int, n: int, truth: Truth) -> Verdict:
    """Return the verdict on as many settings as a usual comparison has."""
    rng = np.random.default_rng(seed)
    testing = testing_with(seed, resamples=200)
    outcomes = [truth.draw(rng, n) for _ in range(SETTINGS)]
    settings = {
        f"setting {number}": (setting_verdict(basis), basis)
        for number, basis in enumerate(testing.bases(outcomes)[0])
    }
    return overall_verdict(settings)


def shares(runs: int, n: int, truth: Truth) -> dict[str, float]:
    """Return how often each kind of verdict was given."""
    kinds = [verdict(seed, n, truth).kind for seed in range(runs)]
    return {kind: kinds.count(kind) / runs for kind in sorted({*kinds})}
