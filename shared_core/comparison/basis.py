"""What the verdict on one setting rests on: figures, and when a difference counts as shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared_core.evaluation.significance import PairedComparison


@dataclass(frozen=True, kw_only=True)
class VerdictBasis:
    """What the verdict on one setting rests on.

    Attributes
    ----------
    against
        Strategy -> baseline -> difference, corrected for all comparisons of the result.
    n
        Questions compared.
    fewest
        Questions below which no order is shown to beat the ranked one, unless others are shown to
        differ from a baseline: Holm's correction then asks less of the rest.
    needed
        Questions that would show a difference of `effect`, if that can be told.
    effect
        In outcome units.
    power
        The chance with which they would.
    level
        Of the tests.
    alike
        0 if no strategy was ever right, 1 if all always were, and else None.
    """

    against: Mapping[str, Mapping[str, PairedComparison]]
    n: int
    fewest: int
    needed: int | None
    effect: float
    power: float
    level: float
    alike: float | None = None

    def over(self, baseline: str) -> dict[str, PairedComparison]:
        """Return strategy -> difference from a baseline."""
        return {
            name: by_baseline[baseline]
            for name, by_baseline in self.against.items()
            if baseline in by_baseline
        }

    def better(self, comparison: PairedComparison) -> bool:
        """Whether a gain is shown: by the corrected p-value, and by the interval."""
        return comparison.adjusted <= self.level and comparison.interval[0] > 0

    def worse(self, comparison: PairedComparison) -> bool:
        """Whether a loss is shown, in the same way."""
        return comparison.adjusted <= self.level and comparison.interval[1] < 0
