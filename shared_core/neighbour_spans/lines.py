"""The chunks of one text in order: by number, or by start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shared_core.arrays import Bools
from shared_core.neighbour_spans.chunks import Chunk, End
from shared_core.types import Passage


@dataclass(frozen=True, slots=True)
class Visible:
    """Which rows a query may see.

    Attributes
    ----------
    size
        Rows from this one on belong to a later state.
    allowed
        Rows that may be seen, shape (size,); None: all.
    passes, passages
        A function of the metadata that a row must also pass, and the passages that hold them.
    kept
        What others keep for as long as the query lasts, by the object that keeps it.
    """

    size: int
    allowed: Bools | None = None
    passes: Callable[[Mapping[str, Any]], bool] | None = None
    passages: Sequence[Passage] = ()
    kept: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)

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
        return int(np.count_nonzero(self.allowed[np.array(rows[:there], np.intp)]))


class Line(ABC):
    """Rows of the chunks of one text, by place.

    The place of a chunk is its number or, without a number, its start.

    Parameters
    ----------
    chunks
        Row -> chunk.
    edge
        What lies beyond the first and the last chunk.

    Attributes
    ----------
    size
        Number of rows.
    """

    def __init__(self, chunks: Mapping[int, Chunk], edge: End = "document") -> None:
        self.size = 0
        self._chunks = chunks
        self._edge = edge
        self._rows: dict[int, list[int]] = {}
        self._differing: dict[int, None] = {}
        self._sorted: list[int] = []

    def put(self, row: int) -> None:
        """Add the chunk of a row, the rows in ascending order."""
        chunk = self._chunks[row]
        place = _place(chunk)
        there = self._rows.setdefault(place, [])
        if there and self._chunks[there[0]].text != chunk.text:
            self._differing[place] = None
        there.append(row)
        self.size += 1

    def holds(self, row: int) -> bool:
        """Return whether a row is in the line."""
        there = self._rows.get(_place(self._chunks[row]), ())
        at = bisect_left(there, row)
        return at < len(there) and there[at] == row

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows at the place of a chunk."""
        return self._rows.get(_place(chunk), ())

    def dispute(self, visible: Visible) -> tuple[Chunk, Chunk] | None:
        """Return two visible chunks at one place that contradict each other; None if none do.

        Rows left behind by an update are not visible, so they dispute nothing.
        """
        for place in list(self._differing):
            longest: Chunk | None = None
            for row in filter(visible, list(self._rows[place])):
                chunk = self._chunks[row]
                if longest is not None and not self._agree(longest, chunk):
                    return longest, chunk
                if longest is None or len(chunk.text) > len(longest.text):
                    longest = chunk
        return None

    @abstractmethod
    def next_to(self, row: int, step: int, visible: Visible) -> int | End:
        """Return the visible row after a row (`step` 1) or before it (-1), or what lies there."""

    @abstractmethod
    def _agree(self, one: Chunk, other: Chunk) -> bool:
        """Return whether two chunks at one place can be of one text."""

    def _beyond(self, place: int, step: int) -> Iterator[int]:
        """Yield the places beyond a place, the nearest first."""
        places = self._sorted
        if len(places) < len(self._rows):
            places = self._sorted = sorted(self._rows)
        at = bisect_right(places, place) if step > 0 else bisect_left(places, place) - 1
        while 0 <= at < len(places):
            yield places[at]
            at += step


class NumberLine(Line):
    """Chunks by number: the neighbours are one lower and one higher."""

    def next_to(self, row: int, step: int, visible: Visible) -> int | End:
        """Return the next row; a number that is left out is a missing chunk."""
        number = _place(self._chunks[row])
        following = self._first(number + step, visible)
        if following is not None:
            return following
        beyond = (self._first(place, visible) for place in self._beyond(number, step))
        return self._edge if all(each is None for each in beyond) else "missing"

    def _first(self, number: int, visible: Visible) -> int | None:
        return next(filter(visible, list(self._rows.get(number, ()))), None)

    def _agree(self, one: Chunk, other: Chunk) -> bool:
        return one.text == other.text


def _place(chunk: Chunk) -> int:
    place = chunk.start if chunk.number is None else chunk.number
    return place or 0
