"""Checks of arguments: counts, choices, numbers in a range, and collections."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, get_args

import numpy as np

from shared_core.wording import shortened

SHOWN = 80
"""Most characters of a value that a message shows."""

Choice = TypeVar("Choice")
Item = TypeVar("Item")


def check_count(value: int, name: str, least: int = 1) -> int:
    """Return `value` as an ``int``, capped at ``sys.maxsize``.

    Raises
    ------
    ValueError
        If it is not an integer >= `least`; bools and floats are refused. The message names it.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
    return min(int(value), sys.maxsize)


def check_counts_of(options: object, least: Mapping[str, int], *, optional: bool = False) -> None:
    """Check the counts of a frozen dataclass, and store each as an ``int``, which JSON can hold.

    Parameters
    ----------
    options
        A dataclass instance.
    least
        Attribute -> its minimum.
    optional
        Whether they may be None, which stands for a default.

    Raises
    ------
    ValueError
        As `check_count`.
    """
    for name, fewest in least.items():
        value = getattr(options, name)
        if value is not None or not optional:
            check_count(value, name, fewest)
            object.__setattr__(options, name, int(value))


def check_choice(value: Choice, name: str, choices: object) -> Choice:
    """Return `value` if it is one of `choices`, a ``Literal`` of strings.

    Raises
    ------
    ValueError
        If it is not; the message lists them.
    """
    known = get_args(choices)
    if not isinstance(value, str) or value not in known:
        listed = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise ValueError(f"{name} must be {listed}, got {value!r}")
    return value


def check_fractions(fractions: Mapping[str, float]) -> None:
    """Raise ValueError if a number does not lie in (0, 1)."""
    for name, value in fractions.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def check_between(value: float | None, name: str, low: float, high: float) -> None:
    """Raise ValueError if a number that is given does not lie in [low, high]."""
    number = isinstance(value, int | float | np.integer | np.floating)
    plain = value.item() if isinstance(value, np.generic) else value  # NumPy would round the bounds
    if plain is not None and not (number and not isinstance(plain, bool) and low <= plain <= high):
        raise ValueError(f"{name} must be a number in [{low}, {high}], or None, got {value!r}")


def check_distinct(name: str, values: Sequence[object]) -> None:
    """Raise ValueError if there are no values, or one occurs twice."""
    if not values:
        raise ValueError(f"{name} must name at least one")
    for value in values:
        if [*values].count(value) > 1:
            raise ValueError(f"{name} must differ, got {value!r} twice")


def check_bool(value: bool, name: str) -> bool:
    """Return `value` if it is a bool, else raise ValueError: any non-empty string would be true."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return value


def check_each(values: Iterable[Item], name: str, kind: type, hint: str = "") -> list[Item]:
    """Return values as a list.

    Raises
    ------
    ValueError
        If `values` is a single item (`check_several`), a mapping or not iterable, or an item is not
        a `kind`; the message then ends with the `hint`.
    """
    check_several(values, name, kind)
    if not isinstance(values, Iterable) or isinstance(values, Mapping):
        raise ValueError(f"{name} must be a list, got {shortened(repr(values), SHOWN)}")
    listed = [*values]
    for at, value in enumerate(listed):
        if not isinstance(value, kind):
            raise ValueError(
                f"{name}[{at}] must be a {kind.__name__}, got {shortened(repr(value), SHOWN)}{hint}"
            )
    return listed


def check_several(value: object, name: str = "ids", one: type = str) -> None:
    """Raise ValueError if `value` is a single item instead of a collection.

    A string would otherwise pass for a collection of its letters, which may be ids themselves.

    Parameters
    ----------
    value
        What was given.
    name
        Its name, for the error.
    one
        The class of an item. A string is always refused.
    """
    if not isinstance(value, str | one):
        return
    shown, kind = shortened(repr(value), SHOWN), "string " if isinstance(value, str) else ""
    raise ValueError(f"{name} must be a list, got the {kind}{shown}; give [{shown}]")
