"""Outcomes with a known truth, in place of a model, through the statistics and the verdict.

``python -m tests.core.comparison.simulated`` prints how often a gain is reported where there is
none, and how often one that is there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import numpy as np

from shared_core.comparison.figures import Testing
from shared_core.comparison.records import Verdict
from shared_core.comparison.verdict import Evidence, overall_verdict, setting_verdict

STRATEGIES = ("sequential", "shuffle", "inverse", "u_shape")
SETTINGS = 2
SHUFFLES = 3


def draw(
    rng: np.random.Generator, n: int, gains: Mapping[str, float], *, same: float = 0.5
) -> dict[str, list[float]]:
    """Return the outcomes of each strategy on `n` questions.

    Questions differ in how hard they are. By the chance `same` an answer does not depend on the
    order, as is usual; otherwise each order is right by the toss of a coin, plus its gain.
    """
    easy = rng.random(n) < 0.6
    moved = rng.random(n) >= same
    outcomes = {}
    for name in STRATEGIES:
        draws = SHUFFLES if name == "shuffle" else 1
        chance = 0.5 + gains.get(name, 0.0) / (1 - same)
        tossed = rng.random((draws, n)) < chance
        outcomes[name] = np.where(moved, tossed, easy).mean(axis=0).tolist()
    return outcomes


def verdict(seed: int, n: int, gains: Mapping[str, float]) -> Verdict:
    """Return the verdict on as many settings as a usual comparison has."""
    rng = np.random.default_rng(seed)
    testing = Testing(confidence=0.95, power=0.8, effect=0.03, seed=seed, resamples=200)
    outcomes = [draw(rng, n, gains) for _ in range(SETTINGS)]
    compared, tests = testing.compare(outcomes)
    settings = {}
    for number, (against, each) in enumerate(zip(compared, outcomes, strict=True)):
        evidence = Evidence(
            against=against,
            n=n,
            fewest=testing.fewest(tests),
            needed=testing.needed(each, tests),
            effect=testing.effect,
            level=testing.level,
        )
        settings[f"setting {number}"] = (setting_verdict(evidence), evidence)
    return overall_verdict(settings)


def covered(seed: int, n: int, gain: float) -> bool:
    """Whether the interval of a gain that was planted covers it."""
    testing = Testing(confidence=0.95, power=0.8, effect=0.03, seed=seed, resamples=1000)
    outcomes = draw(np.random.default_rng(seed), n, {"u_shape": gain})
    (compared,), _ = testing.compare([outcomes])
    lower, upper = compared["u_shape"]["sequential"].interval
    return lower <= gain <= upper


def shares(runs: int, n: int, gains: Mapping[str, float]) -> dict[str, float]:
    """Return how often each kind of verdict was given."""
    kinds = [verdict(seed, n, gains).kind for seed in range(runs)]
    return {kind: kinds.count(kind) / runs for kind in sorted({*kinds})}


def main() -> None:
    """Print the shares of verdicts for noise, and for gains of several sizes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--n", type=int, nargs="+", default=[100, 400])
    options = parser.parse_args()
    for n in options.n:
        for gain in (0.0, 0.03, 0.05, 0.1):
            found = shares(options.runs, n, {"u_shape": gain})
            kinds = ", ".join(f"{kind} {share:.3f}" for kind, share in found.items())
            sys.stdout.write(f"{n} questions, u_shape {gain:+.2f}: {kinds}\n")


if __name__ == "__main__":
    main()
