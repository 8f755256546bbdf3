"""Where a value is on an axis, in per cent of its width."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_MOST_TICKS = 7
_MARGIN = 0.04


@dataclass(frozen=True)
class Scale:
    """A linear axis.

    Attributes
    ----------
    lower, upper
        Values at its ends.
    step
        Distance of its ticks.
    """

    lower: float
    upper: float
    step: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Self:
        """Return an axis that holds 0 and all of the values, with some space on either side."""
        values = [0.0, *values]
        lower, upper = min(values), max(values)
        space = _MARGIN * (upper - lower) or _MARGIN
        lower, upper = lower - space, upper + space
        return cls(lower, upper, _step(upper - lower))

    def at(self, value: float) -> str:
        """Return where a value is; values beyond an end are at that end."""
        return f"{100 * self.share(value):.2f}%"

    def width(self, lower: float, upper: float) -> str:
        """Return the width from one value to another."""
        return f"{100 * (self.share(upper) - self.share(lower)):.2f}%"

    def share(self, value: float) -> float:
        """Return the share of the axis below a value, in [0, 1]."""
        return min(1.0, max(0.0, (value - self.lower) / (self.upper - self.lower)))

    @property
    def ticks(self) -> list[float]:
        """Multiples of the step, from end to end."""
        first, last = math.ceil(self.lower / self.step), math.floor(self.upper / self.step)
        return [round(number * self.step, 6) for number in range(first, last + 1)]


OUTCOMES = Scale(0.0, 1.0, 0.25)
"""The axis of outcomes."""


def _step(width: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten with at most `_MOST_TICKS` ticks."""
    power = 10.0 ** math.floor(math.log10(width / _MOST_TICKS))
    return next(
        factor * power for factor in (1, 2, 5, 10) if width / (factor * power) <= _MOST_TICKS
    )
