"""Metadata filters: which rows a search may find."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from shared_core.arrays import Bools, Rows
from shared_core.types import Passage

Where: TypeAlias = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None
"""Wanted value of each key (any of several: a collection), or a function of the metadata."""

_ABSENT = object()
_UNHASHABLE = object()


def predicate(where: Where) -> Callable[[Mapping[str, Any]], bool]:
    """Return a filter as a function of the metadata, that passes what `MetadataColumns` passes.

    Raises
    ------
    ValueError
        If the filter is of another form.
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
    """Answers filters over the metadata of one snapshot of passages.

    A column is read once, when a filter first names its key.

    Parameters
    ----------
    passages
        By row.
    size
        Number of rows.
    rows
        Rows that are not deleted; no filter passes the others, or looks at them.
    """

    def __init__(self, passages: Sequence[Passage], size: int, rows: Sequence[int]) -> None:
        self._passages = passages
        self._size = size
        self._rows = rows
        self._columns: dict[str, dict[Any, Rows]] = {}

    def allowed(self, where: Where) -> Bools | None:
        """Return which rows pass a filter, shape (rows,); None if there is no filter.

        Raises
        ------
        ValueError
            If the filter is of another form.
        """
        if where is None:
            return None
        if callable(where):
            allowed = np.zeros(self._size, np.bool_)
            allowed[[row for row in self._rows if where(self._passages[row].metadata)]] = True
            return allowed
        allowed = np.zeros(self._size, np.bool_)
        allowed[self._rows] = True
        for key, wanted in _wanted(where).items():
            column = self._column(key)
            matching = np.zeros(self._size, np.bool_)
            for value in wanted & column.keys():
                matching[column[value]] = True
            allowed &= matching
        return allowed

    def _column(self, key: str) -> dict[Any, Rows]:
        column = self._columns.get(key)
        if column is None:
            rows: dict[Any, list[int]] = {}
            for row in self._rows:
                value = self._passages[row].metadata.get(key, _ABSENT)
                if value is not _ABSENT:
                    rows.setdefault(_hashable(value), []).append(row)
            column = {value: np.array(held, np.intp) for value, held in rows.items()}
            self._columns[key] = column
        return column


@dataclass(frozen=True, slots=True)
class Visible:
    """Which rows a query may see.

    Attributes
    ----------
    size
        Rows from here on are of a later state.
    allowed
        Rows that may be seen, shape (size,); None: all.
    passes, passages
        A function of the metadata that a row has to pass as well, and where it finds them.
    """

    size: int
    allowed: Bools | None = None
    passes: Callable[[Mapping[str, Any]], bool] | None = None
    passages: Sequence[Passage] = ()

    def __call__(self, row: int) -> bool:
        """Return whether a row may be seen."""
        if row >= self.size or (self.allowed is not None and not self.allowed[row]):
            return False
        return self.passes is None or bool(self.passes(self.passages[row].metadata))

    def count(self, rows: Sequence[int]) -> int:
        """Return how many of these ascending rows may be seen."""
        if self.passes is not None:
            return sum(map(self, rows))
        there = bisect_left(rows, self.size)
        if self.allowed is None:
            return there
        return int(np.count_nonzero(self.allowed[list(rows[:there])]))


def _wanted(where: Mapping[str, Any]) -> dict[str, set[Any]]:
    """Return the values that pass, by key, as `_hashable` has them."""
    if not isinstance(where, Mapping):
        raise ValueError(f"a filter is a mapping or a function of the metadata, got {where!r}")
    for key, value in where.items():
        if not isinstance(key, str):
            raise ValueError(f"filter {key!r}: {value!r} does not name its key by a text")
        if key.startswith("$") or isinstance(value, Mapping):
            raise ValueError(
                f"filter {key!r}: {value!r} uses operators; give a function of the metadata instead"
            )
        if isinstance(value, Iterator):
            raise ValueError(f"filter {key!r}: {value!r} can be read but once; give a list")
    return {key: set(map(_hashable, several(value))) for key, value in where.items()}


def several(value: Any) -> Collection[Any]:
    """Return the values of which a filter wants any: those of a collection, or the only one."""
    single = isinstance(value, str | bytes) or not isinstance(value, Collection)
    return [value] if single else value


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return _UNHASHABLE, repr(value)
    return value
