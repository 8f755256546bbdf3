"""The order gate on measured curves: what each rule gains over the ranked order.

::

    python -m benchmarks.orders --data position_curves.json published_profiles.json
        [--outcomes position_outcomes.json] [--n 100] [--draws 200]

A file of curves holds ``profiles``, each with ``accuracy_by_slot`` of ``documents`` passages, or
``accuracy_by_depth``. From each curve profiles of `n` questions are drawn; a rule decides by such a
profile, and what its order gains is read from the curve itself: points of expected accuracy over
the order as ranked, with the rates in `HIT_RATES`. A file of outcomes holds right and wrong by
question: there one half of the questions makes the profile, and the other half judges.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shared_core import PositionProfile, decide_order
from shared_core.arrays import Scores
from shared_core.placement.order_gate import CANDIDATES, rates_by_rank
from shared_core.types import OrderDecision

SAME = 0.5
"""Share of answers that depend on how hard the question is, and not on the slot."""

RULES: dict[str, Callable[[PositionProfile, int], OrderDecision]] = {
    "U-shape always": lambda _, k: decide_order("always", k=k),
    "index > 1 (the paper)": lambda profile, k: decide_order(profile, k=k, rule="psi"),
    "max_relevance always": lambda profile, k: decide_order(
        PositionProfile(model="m", accuracy=profile.accuracy), "max_relevance", k=k
    ),
    "max_relevance": lambda profile, k: decide_order(profile, "max_relevance", k=k),
    "auto": lambda profile, k: decide_order(profile, k=k),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--outcomes", type=Path)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    curves = [curve for path in options.data for curve in read(path)]
    print(f"{len(curves)} curves, profiles of {options.n} questions, {options.draws} of each")
    for k in (5, 10, 20):
        table(k, [resampled(depths, means, k) for depths, means in curves], options)
    if options.outcomes is not None:
        halves(json.loads(options.outcomes.read_text("utf-8"))["models"], options.draws)


def read(path: Path) -> Iterator[tuple[Scores, Scores]]:
    """Yield relative depth and accuracy of each curve."""
    for profile in json.loads(path.read_text("utf-8"))["profiles"]:
        by_depth = profile.get("accuracy_by_depth")
        by_slot = by_depth or profile["accuracy_by_slot"]
        last = 1 if by_depth else profile["documents"] - 1
        points = sorted((float(at) / last, value) for at, value in by_slot.items())
        yield np.array([at for at, _ in points]), np.array([value for _, value in points])


def resampled(depths: Scores, means: Scores, k: int) -> Scores:
    return np.interp(np.linspace(0, 1, k), depths, means)


def table(k: int, curves: Sequence[Scores], options: argparse.Namespace) -> None:
    rng = np.random.default_rng(k)
    gains = {rule: np.zeros(len(curves)) for rule in RULES}
    moves, false = dict.fromkeys(RULES, 0), dict.fromkeys(RULES, 0)
    for at, curve in enumerate(curves):
        for _ in range(options.draws):
            profile = drawn(curve, options.n, rng)
            for rule, decide in RULES.items():
                decision = decide(profile, k)
                gain = points(decision.slots, curve)
                gains[rule][at] += gain / options.draws
                moves[rule] += decision.opened
                false[rule] += decision.opened and gain <= 0
    print(f"\nk = {k}: points over the order as ranked")
    print(f"{'':24}{'mean':>7}{'worst':>8}{'moves':>7}{'false':>7}")
    for rule, each in gains.items():
        share, wrong = (count / len(curves) / options.draws for count in (moves[rule], false[rule]))
        print(f"{rule:24}{each.mean():+7.2f}{each.min():+8.2f}{share:7.0%}{wrong:7.1%}")
    best = [max(0.0, *(points(order(k), curve) for order in CANDIDATES)) for curve in curves]
    print(f"{'oracle among the four':24}{np.mean(best):+7.2f}")


def drawn(curve: Scores, n: int, rng: np.random.Generator) -> PositionProfile:
    """Return a profile of `n` questions, half of whose answers rise and fall together."""
    shape = (n, len(curve))
    hard = np.where(rng.random(shape) < SAME, rng.random((n, 1)), rng.random(shape))
    return profile_of((hard < curve).astype(np.float64))


def profile_of(outcomes: Scores, slots: Sequence[int] = (), k: int = 0) -> PositionProfile:
    found: dict[str, Any] = {"outcomes": tuple(map(tuple, outcomes.tolist())), "n": len(outcomes)}
    mean = tuple(outcomes.mean(axis=0).tolist())
    return PositionProfile(model="m", accuracy=mean, slots=tuple(slots), k=k, **found)


def points(slots: Sequence[int], curve: Scores) -> float:
    rates = rates_by_rank(None, len(curve))
    return 100 * float((rates[[*slots]] - rates) @ curve)


def halves(models: dict[str, Any], draws: int) -> None:
    """One half of the questions makes the profile, the other judges its order."""
    rng = np.random.default_rng(0)
    print("\nRight or wrong by question: one half decides, the other judges (points)")
    print(f"{'':32}" + "".join(f"{rule:>24}" for rule in RULES))
    for model, by_k in models.items():
        for k, found in by_k.items():
            outcomes = np.array([[*map(float, row)] for row in found["correct"]])
            gains = {rule: list[float]() for rule in RULES}
            for _ in range(draws):
                order = rng.permutation(len(outcomes))
                mine, others = np.array_split(outcomes[order], 2)
                profile = profile_of(mine, found["slots"], int(k))
                judge = np.array(profile_of(others, found["slots"], int(k)).accuracy_at(10))
                for rule, decide in RULES.items():
                    gains[rule].append(points(decide(profile, 10).slots, judge))
            name = f"{model}, {k} passages, at 10"
            print(f"{name:32}" + "".join(f"{np.mean(each):+24.2f}" for each in gains.values()))


if __name__ == "__main__":
    main()
