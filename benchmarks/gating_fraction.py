"""Whether the constant of the calibrated edge holds on a collection that it was not chosen by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.gating_collections import (
    OTHERS,
    Embed,
    Split,
    balanced,
    fit,
    measured,
    sources,
)
from shared_core.gating.decision import SHARE

GRID = tuple(round(step / 20, 2) for step in range(2, 19))
"""Fractions that are tried: how far up from the foreign questions to the pseudo-queries."""


@dataclass(frozen=True)
class Placed:
    """Questions of a split, as fractions of the way from the foreign level to the near one."""

    name: str
    positives: np.ndarray
    negatives: dict[str, np.ndarray]

    def refused(self, without: str = "") -> np.ndarray:
        """Return the questions of the other collections, but for one."""
        parts = [values for name, values in self.negatives.items() if name != without]
        return np.concatenate(parts)


def fractions(splits: list[Split], everyday: np.ndarray, embed: Embed) -> None:
    """Print the accuracy over the fraction, and that of fractions chosen on other collections.

    For each collection the fraction is chosen on the others, by their mean balanced accuracy;
    their negatives hold no question of the collection that is left out.
    """
    print("\nThe fraction of the calibrated edge: balanced accuracy against other collections")
    for what in ("given questions", "key phrases"):
        placed = [_placed(each, what, everyday, embed) for each in splits]
        print(f"\n{what:34}" + "".join(f"{fraction:>6}" for fraction in GRID))
        curves = {each.name: _curve(each) for each in placed}
        curves["mean"] = np.mean([*curves.values()], axis=0)
        for name, curve in curves.items():
            print(f"  {name:32}" + "".join(f"{value:6.3f}" for value in curve))
        if len(placed) > 2:
            for each in placed:
                _left_out(each, [other for other in placed if other is not each])


def _left_out(each: Placed, others: Sequence[Placed]) -> None:
    curves = [_curve(other, without=each.name) for other in others]
    chosen = GRID[int(np.mean(curves, axis=0).argmax())]
    cells = [
        f"{fraction}: {measured(each.positives >= fraction, each.refused() < fraction)}"
        for fraction in (chosen, SHARE)
    ]
    print(f"  {each.name + ' left out':40} chosen {cells[0]}   fixed {cells[1]}")


def _curve(each: Placed, without: str = "") -> np.ndarray:
    refused = each.refused(without)
    return np.array([balanced(each.positives, refused, fraction) for fraction in GRID])


def _placed(each: Split, what: str, everyday: np.ndarray, embed: Embed) -> Placed:
    owners, pseudo = sources(each, embed)[what]
    levels = fit(each.vectors, owners, pseudo, everyday).levels
    foreign = levels.foreign
    assert foreign is not None
    return Placed(
        each.collection.name,
        (each.nearest([each.positives]) - foreign) / (levels.near - foreign),
        {
            asked.collection.name: (each.nearest([asked]) - foreign) / (levels.near - foreign)
            for asked in each.negatives[OTHERS]
        },
    )
