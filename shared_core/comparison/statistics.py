"""Turns outcomes into estimates and differences, and corrects all p-values of a result at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shared_core.comparison.records import BASELINES, Estimate
from shared_core.evaluation.changes import order_differences
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.evaluation.power import (
    fewest_questions,
    minimum_detectable_effect,
    questions_needed,
)
from shared_core.evaluation.significance import PairedComparison, compare_paired, holm

SEQUENTIAL, SHUFFLE = BASELINES

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
        Difference that `needed` is for.
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

    def compare(self, settings: Sequence[Outcomes]) -> tuple[list[Against], int]:
        """Compare every strategy with both baselines, in every setting.

        Returns
        -------
        differences, tests
            Setting by setting; and the number of comparisons that every p-value is corrected for
            (Holm) and every detectable difference allows for (Bonferroni, which is not smaller).
            Settings of fewer than two questions have no differences, but are counted.
        """
        raw = [self._raw(outcomes) for outcomes in settings]
        p_values = {
            _test(number, name, baseline): comparison.p_value
            for number, against in enumerate(raw)
            for name, by_baseline in against.items()
            for baseline, comparison in by_baseline.items()
        }
        tests = sum(2 * len(outcomes) - 3 for outcomes in settings)
        untested = [1.0] * (tests - len(p_values))
        adjusted = dict(zip(p_values, holm([*p_values.values(), *untested]), strict=False))

        def corrected(number: int, name: str, baseline: str) -> PairedComparison:
            return replace(
                raw[number][name][baseline],
                adjusted=adjusted[_test(number, name, baseline)],
                detectable=minimum_detectable_effect(
                    order_differences(settings[number][name], settings[number][baseline]),
                    power=self.power,
                    alpha=self.level / tests,
                ),
            )

        return [
            {
                name: {base: corrected(number, name, base) for base in by_baseline}
                for name, by_baseline in against.items()
            }
            for number, against in enumerate(raw)
        ], tests

    def needed(self, outcomes: Outcomes, tests: int) -> int | None:
        """Return how many questions would show `effect` of any strategy over the ranked order."""
        if len(outcomes[SEQUENTIAL]) < 2:
            return None
        return max(
            questions_needed(
                order_differences(outcomes[name], outcomes[SEQUENTIAL]),
                self.effect,
                power=self.power,
                alpha=self.level / tests,
            )
            for name in outcomes
            if name != SEQUENTIAL
        )

    def fewest(self, tests: int) -> int:
        """Return the number of questions below which no order is shown to beat the ranked one.

        This holds as long as nothing else is shown: Holm's correction allows for all tests, as
        Bonferroni's does, until one of them (say, in a setting of more questions) rejects.
        """
        return fewest_questions(self.level / tests)

    def _raw(self, outcomes: Outcomes) -> Against:
        if len(outcomes[SEQUENTIAL]) < 2:
            return {}
        found: Against = {name: {} for name in outcomes}
        others = {name: each for name, each in outcomes.items() if name != SEQUENTIAL}
        for baseline, compared in ((SEQUENTIAL, outcomes), (SHUFFLE, others)):
            against = compare_paired(
                compared,
                baseline,
                confidence=self.confidence,
                power=self.power,
                resamples=self.resamples,
                seed=self.seed,
            )
            for name, comparison in against.items():
                found[name][baseline] = comparison
        # Resampled separately it would get other bounds, and only one of the two might exclude 0.
        found[SEQUENTIAL][SHUFFLE] = _reversed(found[SHUFFLE][SEQUENTIAL])
        return found


def _reversed(comparison: PairedComparison) -> PairedComparison:
    """Return the same comparison seen from the baseline."""
    lower, upper = comparison.interval
    # 0.0 - x, not -x, which would show 0.0 as -0.00
    return replace(
        comparison, difference=0.0 - comparison.difference, interval=(0.0 - upper, 0.0 - lower)
    )


def alike(outcomes: Outcomes) -> float | None:
    """Return 0 if no strategy was ever right, 1 if all always were, otherwise None."""
    values = {
        value for by_question in outcomes.values() for orders in by_question for value in orders
    }
    return values.pop() if values in ({0.0}, {1.0}) else None


def _test(number: int, name: str, baseline: str) -> tuple[int, str, str]:
    """Return the key of a test; the two baselines against each other are one test."""
    if (name, baseline) == (SEQUENTIAL, SHUFFLE):
        name, baseline = baseline, name
    return number, name, baseline
