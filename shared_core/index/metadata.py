"""Metadata filters: which rows a search may find."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from shared_core.arrays import Bools, Rows
from shared_core.types import Passage

Where: TypeAlias = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None
"""What each key of the metadata must hold: a value, one of several in a collection, or a number
within bounds, as ``{"$gte": 2020, "$lt": 2024}``. Or a function of the metadata. Whether a bool
counts as a number, and a list by what it holds, differs between databases."""

BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
"""What a number may be compared by."""

SIGNS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
"""The same as most databases write it."""

NO_ROWS: Rows = np.zeros(0, np.intp)

_ABSENT = object()
_UNHASHABLE = object()


def predicate(where: Where) -> Callable[[Mapping[str, Any]], bool]:
    """Return a filter as a function of the metadata, equivalent to `MetadataColumns`.

    Raises
    ------
    ValueError
        If the filter is malformed.
    """
    if where is None:
        return lambda metadata: True
    if callable(where):
        return where
    wanted = _wanted(where)
    return lambda metadata: all(
        key in metadata and _hashable(metadata[key]) in values for key, values in wanted.items()
    )


class MetadataColumns:
    """Evaluates filters over the metadata of passages that are only ever appended to.

    A column is read when a filter first names its key; later, only new passages are read.
    Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns: dict[str | None, _Column] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # a copy reads its passages itself

    def allowed(
        self, where: Where, passages: Sequence[Passage], size: int, alive: Bools | None
    ) -> Bools | None:
        """Return which rows are alive and pass a filter, shape (size,); None if all do.

        Parameters
        ----------
        where
            The filter.
        passages
            By row; each call is given the same ones, to which more may have been appended.
        size
            Number of rows to look at.
        alive
            Rows that are not deleted, shape (size,); None: all.

        Raises
        ------
        ValueError
            If the filter is malformed.
        """
        if where is None:
            return alive
        if callable(where):
            there = range(size) if alive is None else alive.nonzero()[0].tolist()
            passing = np.zeros(size, np.bool_)
            passing[[row for row in there if where(passages[row].metadata)]] = True
            return passing
        allowed = alive
        for key, wanted in _wanted(where).items():
            column = self._read(key, passages, size)
            passing = np.zeros(size, np.bool_)
            if isinstance(wanted, Within):
                held = [rows for value, rows in column.rows.copy().items() if value in wanted]
            else:
                held = [column.rows.get(value, NO_ROWS) for value in wanted]
            for rows in held:
                passing[rows[rows < size]] = True  # another thread may have read on
            allowed = passing if allowed is None else allowed & passing
        return allowed

    def rows_of_text(self, text: str, passages: Sequence[Passage], size: int) -> list[int]:
        """Return the rows of the passages of a text, deleted ones included, ascending."""
        rows = self._read(None, passages, size).rows.get(text, NO_ROWS)
        return [int(row) for row in rows if row < size]

    def _read(self, key: str | None, passages: Sequence[Passage], size: int) -> _Column:
        """Return the values under a key; None: the texts."""
        column = self._columns.get(key)
        if column is not None and column.size >= size:
            return column
        with self._lock:
            column = self._columns.setdefault(key, _Column())
            found: dict[Any, list[int]] = {}
            for row in range(column.size, size):
                passage = passages[row]
                value = passage.text if key is None else passage.metadata.get(key, _ABSENT)
                if value is not _ABSENT:
                    found.setdefault(_hashable(value), []).append(row)
            # Interrupted here, the same rows are found once more, which changes no filter.
            column.rows.update(
                {v: np.append(column.rows.get(v, NO_ROWS), rows) for v, rows in found.items()}
            )
            column.size = max(size, column.size)
        return column


@dataclass(slots=True)
class _Column:
    """The values of one key, or the texts.

    Attributes
    ----------
    size
        Rows that have been read.
    rows
        Value -> rows that hold it.
    """

    size: int = 0
    rows: dict[Any, Rows] = field(default_factory=dict)


class Within(dict[str, float]):
    """Bounds of a number: operator in `BOUNDS` -> number."""

    def __contains__(self, value: object) -> bool:
        """Whether a value is a number within the bounds."""
        number = isinstance(value, Real) and not isinstance(value, bool)
        return number and all(BOUNDS[name](value, bound) for name, bound in self.items())


def conditions(
    where: Mapping[str, Any], own: str = "a function of the metadata"
) -> tuple[dict[str, list[Any]], dict[str, Within]]:
    """Return the values that a filter accepts by key, and the bounds by key.

    Raises
    ------
    ValueError
        If the filter is malformed; `own` is what to give for anything that a mapping cannot say.
    """
    if not isinstance(where, Mapping):
        raise ValueError(f"a filter must be a mapping or a function of the metadata, got {where!r}")
    values, ranges = dict[str, list[Any]](), dict[str, Within]()
    for key, value in where.items():
        if not isinstance(key, str):
            raise ValueError(f"filter {key!r}: {value!r} has a key that is not a string")
        if key.startswith("$"):
            raise ValueError(
                f"filter {key!r}: {value!r} joins filters: name all keys in one mapping, whose "
                "lists mean any of their values, as {'lang': ['en', 'de'], 'year': 2020}; for "
                f"anything else give {own}"
            )
        if isinstance(value, Iterator):
            raise ValueError(f"filter {key!r}: {value!r} can be read only once; give a list")
        if isinstance(value, Mapping):
            ranges[key] = _within(key, value, own)
        else:
            single = isinstance(value, str | bytes) or not isinstance(value, Collection)
            values[key] = [value] if single else [*value]
    return values, ranges


def _within(key: str, value: Mapping[str, Any], own: str) -> Within:
    numbers = all(
        isinstance(bound, Real) and not isinstance(bound, bool) and math.isfinite(bound)
        for bound in value.values()
    )
    if not value or not numbers or not {*value} <= {*BOUNDS}:
        raise ValueError(
            f"filter {key!r}: {value!r} is no range of numbers, as {{'$gte': 1, '$lt': 5}} is; "
            f"for any of several values give a list, and for anything else {own}"
        )
    plain = {name: int(b) if isinstance(b, Integral) else float(b) for name, b in value.items()}
    return Within(plain)  # not NumPy's, which JSON cannot hold


def _wanted(where: Mapping[str, Any]) -> dict[str, set[Any] | Within]:
    """Return what passes by key: values as `_hashable` has them, or bounds."""
    values, ranges = conditions(where)
    return ranges | {key: {*map(_hashable, each)} for key, each in values.items()}


def _hashable(value: Any) -> Any:
    """Return a value that stands for another: equal where the others are, and hashable.

    Lists and dictionaries are compared by what they hold. Of anything else without a hash, what it
    looks like decides.
    """
    if isinstance(value, list):
        return list, tuple(map(_hashable, value))
    if isinstance(value, Mapping):
        return Mapping, frozenset((key, _hashable(held)) for key, held in value.items())
    try:
        hash(value)
    except TypeError:
        return _UNHASHABLE, repr(value)
    return value
