"""Turns outcomes into estimates and differences, and corrects all p-values of a result at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shared_core.comparison.result import BASELINES, SEQUENTIAL, SHUFFLE, Estimate
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.evaluation.paired_differences import paired_differences
from shared_core.evaluation.power import fewest_questions, questions_needed
from shared_core.evaluation.significance import PairedComparison, compare_paired

Outcomes = Mapping[str, Sequence[Sequence[float]]]
"""Strategy -> question -> outcome of each of its orders, the same questions in all."""

Against = dict[str, dict[str, PairedComparison]]
"""Strategy -> baseline -> difference."""


@dataclass(frozen=True, kw_only=True)
class Testing:
    """How differences are judged.

    Attributes
    ----------
    confidence
        Coverage of an interval; 1 less the level of the tests.
    power
        Chance to show a difference that is called detectable.
    effect
        Difference for which it is said how many questions show it.
    seed, resamples
        Of the intervals.
    """

    confidence: float
    power: float
    effect: float
    seed: int
    resamples: int = 10_000

    @property
    def level(self) -> float:
        """Level of the tests."""
        return 1 - self.confidence

    def estimate(self, outcomes: Sequence[float]) -> Estimate:
        """Return the mean outcome with its interval."""
        values = np.asarray(outcomes, np.float64)
        interval = None
        if len(values) > 1:
            interval = bootstrap_interval(
                values[:, None],
                lambda means: means[:, 0],
                confidence=self.confidence,
                resamples=self.resamples,
                seed=self.seed,
            )
        return Estimate(mean=float(values.mean()), interval=interval, n=len(values))

    def bases(self, settings: Sequence[Outcomes]) -> tuple[list[VerdictBasis], int]:
        """Return what the verdict on each setting rests on.

        Returns
        -------
        bases, tests
            Setting by setting; and the number of comparisons that every p-value is corrected for
            (Holm) and every detectable difference allows for (Bonferroni, which is not smaller).
            Settings of fewer than two questions have no differences, but are counted.
        """
        tests = sum(2 * len(outcomes) - 3 for outcomes in settings)
        bases = [
            VerdictBasis(
                testing=self,
                against=against,
                n=len(outcomes[SEQUENTIAL]),
                # Of Bonferroni's level, as Holm's is until another test rejects.
                fewest=fewest_questions(self.level / tests),
                needed=self._needed(outcomes, tests),
                alike=_alike(outcomes),
            )
            for outcomes, against in zip(settings, self._compared(settings, tests), strict=True)
        ]
        return bases, tests

    def _compared(self, settings: Sequence[Outcomes], tests: int) -> list[Against]:
        """Compare every strategy with both baselines, in every setting."""
        compared = compare_paired(
            {
                (number, name, baseline): (outcomes[name], outcomes[baseline])
                for number, outcomes in enumerate(settings)
                for baseline in BASELINES
                for name in outcomes
                if name not in (SEQUENTIAL, baseline) and len(outcomes[name]) > 1
            },
            tests=tests,
            confidence=self.confidence,
            power=self.power,
            resamples=self.resamples,
            seed=self.seed,
        )
        found: list[Against] = [{name: {} for name in outcomes} for outcomes in settings]
        for (number, name, baseline), comparison in compared.items():
            found[number][name][baseline] = comparison
            if (name, baseline) == (SHUFFLE, SEQUENTIAL):
                # One test, and one set of resamples: else only one side might exclude 0.
                found[number][SEQUENTIAL][SHUFFLE] = _reversed(comparison)
        return found

    def _needed(self, outcomes: Outcomes, tests: int) -> int | None:
        """Return how many questions would show `effect` of any strategy over the ranked order."""
        if len(outcomes[SEQUENTIAL]) < 2:
            return None
        return max(
            questions_needed(
                paired_differences(outcomes[name], outcomes[SEQUENTIAL]),
                self.effect,
                power=self.power,
                alpha=self.level / tests,
            )
            for name in outcomes
            if name != SEQUENTIAL
        )


@dataclass(frozen=True, kw_only=True)
class VerdictBasis:
    """What the verdict on one setting rests on.

    Attributes
    ----------
    testing
        How differences are judged.
    against
        Strategy -> baseline -> difference, corrected for all comparisons of the result.
    n
        Questions compared.
    fewest
        Questions below which no order is shown to beat the ranked one, unless other differences
        are shown: Holm's correction then asks less of the rest.
    needed
        Questions that would show a difference of `Testing.effect`; None if that is not known.
    alike
        0 if no strategy was ever right, 1 if all always were, otherwise None.
    """

    testing: Testing
    against: Mapping[str, Mapping[str, PairedComparison]]
    n: int
    fewest: int
    needed: int | None
    alike: float | None = None

    @cached_property
    def over_ranked(self) -> dict[str, PairedComparison]:
        """Strategy -> difference from the ranked order."""
        return {name: by[SEQUENTIAL] for name, by in self.against.items() if SEQUENTIAL in by}

    @cached_property
    def gains(self) -> dict[str, PairedComparison]:
        """Those that are shown to beat the ranked order."""
        return self._shown("better")

    @cached_property
    def losses(self) -> dict[str, PairedComparison]:
        """Those that are shown to lose against it."""
        return self._shown("worse")

    @property
    def beats_shuffle(self) -> bool:
        """Whether any order is shown to beat shuffling."""
        return any(self.better(by[SHUFFLE]) for by in self.against.values() if SHUFFLE in by)

    def better(self, comparison: PairedComparison) -> bool:
        """Whether a gain is shown."""
        return comparison.shown(self.testing.level) == "better"

    def _shown(self, kind: str) -> dict[str, PairedComparison]:
        level = self.testing.level
        return {name: each for name, each in self.over_ranked.items() if each.shown(level) == kind}


def _reversed(comparison: PairedComparison) -> PairedComparison:
    """Return the same comparison seen from the baseline."""
    lower, upper = comparison.interval
    # 0.0 - x, not -x, which would show 0.0 as -0.00
    return replace(
        comparison, difference=0.0 - comparison.difference, interval=(0.0 - upper, 0.0 - lower)
    )


def _alike(outcomes: Outcomes) -> float | None:
    """Return 0 if no strategy was ever right, 1 if all always were, otherwise None."""
    values = {
        value for by_question in outcomes.values() for orders in by_question for value in orders
    }
    return values.pop() if values in ({0.0}, {1.0}) else None
