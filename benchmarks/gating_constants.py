"""The constants of the gate's default, each chosen on other collections than it is judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np

from benchmarks.gating_collections import HELD_OUT, Embed, Evidence, Split
from shared_core.gating import VectorCandidates, candidates
from shared_core.gating.fit import fit_gate

GRIDS = {
    "SHARE": (0.2, 0.3, 0.4, 0.5, 0.6),
    "RAISE": (0.0, 0.25, 0.5, 0.75, 1.0),
    "NEIGHBOURING": (0.9, 0.95, 0.98, 0.99, 1.0),
    "COVERAGE_WEIGHT": (0.0, 2.0, 4.0, 8.0, 16.0),
    "COVERAGE_MIDDLE": (0.3, 0.4, 0.5, 0.6, 0.7),
}
"""The values that are tried of each constant; the other constants stay."""


@dataclass(frozen=True)
class Fitted:
    """A gate fitted on a split, and the questions that it decides on by whom they are about."""

    name: str
    gate: VectorCandidates
    positives: Evidence
    negatives: Mapping[str, Evidence]

    def shares(self) -> dict[str, float]:
        """Return the share that is decided rightly: of the positives "", and of each negative."""
        gate = replace(self.gate)  # a copy has nothing cached

        def retrieved(evidence: Evidence) -> float:
            return float(
                np.mean([gate.decide(near, coverage=share).retrieve for near, share in evidence])
            )

        refused = {side: 1 - retrieved(each) for side, each in self.negatives.items()}
        return {"": retrieved(self.positives)} | refused


def constants(splits: list[Split], embed: Embed) -> None:
    """Print the balanced accuracy of each collection by constant, and that chosen on the others.

    It is the mean of that against held-out topics and that against the other collections. To choose
    for a collection, its questions are left out of the others' negatives.
    """
    print("\nThe constants of the default: balanced accuracy, key phrases and words")
    fitted = [_fitted(each, embed) for each in splits]
    for constant, values in GRIDS.items():
        present = values.index(getattr(candidates, constant))
        found = []
        for value in values:
            with patch.object(candidates, constant, value):
                found.append([each.shares() for each in fitted])
        curves = np.array([[_balanced(one) for one in each] for each in found]).T
        print(f"\n{constant:34}" + "".join(f"{value:>7}" for value in values))
        for each, curve in zip(fitted, curves, strict=True):
            print(f"  {each.name:32}" + "".join(f"{value:7.3f}" for value in curve))
        print(f"  {'mean':32}" + "".join(f"{value:7.3f}" for value in curves.mean(axis=0)))
        if len(fitted) > 2:
            best = [_best_on_others(found, fitted, at) for at in range(len(fitted))]
            gains = curves[np.arange(len(best)), best] - curves[:, present]
            error = gains.std(ddof=1) / np.sqrt(len(gains))
            print(f"  chosen on the others: {[values[at] for at in best]}")
            print(
                f"  less {values[present]}: mean {gains.mean():+.4f} (standard error {error:.4f}), "
                f"worst {gains.min():+.4f}"
            )


def _best_on_others(
    found: Sequence[Sequence[dict[str, float]]], fitted: Sequence[Fitted], out: int
) -> int:
    without = fitted[out].name
    others = [[one for at, one in enumerate(each) if at != out] for each in found]
    return int(np.argmax([np.mean([_balanced(one, without) for one in each]) for each in others]))


def _balanced(shares: Mapping[str, float], without: str = "") -> float:
    foreign = [shares[side] for side in shares if side not in ("", HELD_OUT, without)]
    return (shares[""] + (shares[HELD_OUT] + float(np.mean(foreign))) / 2) / 2


def _fitted(each: Split, embed: Embed) -> Fitted:
    ids = [str(row) for row in each.rows]
    gate = fit_gate(ids, each.texts, each.vectors, embed)
    assert gate.coverage is not None
    negatives = {
        HELD_OUT if asked.collection is each.collection else asked.collection.name: asked
        for part in each.negatives.values()
        for asked in part
    }
    return Fitted(
        each.collection.name,
        gate.candidates,
        each.evidence(each.positives, gate.coverage),
        {side: each.evidence(asked, gate.coverage) for side, asked in negatives.items()},
    )
