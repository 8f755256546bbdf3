"""What options have in common: numbers in range, and names that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def check_counts(counts: Mapping[str, int | None]) -> None:
    """Raise ValueError if a number is below 1; None stands for a default."""
    for name, value in counts.items():
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def check_fractions(fractions: Mapping[str, float]) -> None:
    """Raise ValueError if a number does not lie in (0, 1)."""
    for name, value in fractions.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def check_distinct(name: str, values: Sequence[object]) -> None:
    """Raise ValueError if there is no value, or one is there twice."""
    if not values:
        raise ValueError(f"{name} must name at least one")
    for value in values:
        if [*values].count(value) > 1:
            raise ValueError(f"{name} must differ, got {value!r} twice")
