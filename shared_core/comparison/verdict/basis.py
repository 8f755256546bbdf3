"""What the verdict on one setting rests on: figures, and when a difference counts as shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
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
        Questions below which no order is shown to beat the ranked one, unless other differences
        are shown: Holm's correction then asks less of the rest.
    needed
        Questions that would show a difference of `effect`; None if that is not known.
    effect
        In outcome units.
    power
        The chance that they would.
    level
        Of the tests.
    alike
        0 if no strategy was ever right, 1 if all always were, otherwise None.
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

    @property
    def differs(self) -> bool:
        """Whether any difference from the ranked order is shown."""
        return any(self.better(each) or self.worse(each) for each in self.over(SEQUENTIAL).values())

    @property
    def beats_shuffle(self) -> bool:
        """Whether any order is shown to beat shuffling."""
        return any(map(self.better, self.over(SHUFFLE).values()))

    def better(self, comparison: PairedComparison) -> bool:
        """Whether a gain is shown: by the corrected p-value, and by the interval."""
        return comparison.adjusted <= self.level and comparison.interval[0] > 0

    def worse(self, comparison: PairedComparison) -> bool:
        """Whether a loss is shown, in the same way."""
        return comparison.adjusted <= self.level and comparison.interval[1] < 0
