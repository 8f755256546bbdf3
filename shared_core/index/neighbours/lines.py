"""The chunks of one text in order: by number, or by start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from shared_core.expansion import Chunk, End
from shared_core.index.metadata import Visible

MOST_STRIPPED = 100
"""Most characters that a splitter is taken to have stripped between two chunks; a wider gap means
that a chunk is missing."""


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
        self._disputed: dict[int, None] = {}
        self._sorted: list[int] = []

    def put(self, row: int) -> None:
        """Add the chunk of a row."""
        chunk = self._chunks[row]
        place = _place(chunk)
        there = self._rows.setdefault(place, [])
        if there and self._chunks[there[0]].text != chunk.text:
            self._disputed[place] = None
        there.append(row)
        self.size += 1

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows at the place of a chunk."""
        return self._rows.get(_place(chunk), ())

    def dispute(self, visible: Visible) -> tuple[Chunk, Chunk] | None:
        """Return two visible chunks of different text at one place; None if there are none.

        Rows left behind by an update are not visible, so they dispute nothing.
        """
        for place in list(self._disputed):
            chunks = (self._chunks[row] for row in list(self._rows[place]) if visible(row))
            first = next(chunks, None)
            other = next((each for each in chunks if first and each.text != first.text), None)
            if first is not None and other is not None:
                return first, other
        return None

    @abstractmethod
    def next_to(self, chunk: Chunk, step: int, visible: Visible) -> int | End:
        """Return the visible row after a chunk (`step` 1) or before it (-1), or what lies there."""

    def _first(self, place: int, visible: Visible) -> int | None:
        return next(filter(visible, list(self._rows.get(place, ()))), None)

    def _outwards(self, place: int, step: int) -> Iterator[int]:
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

    def next_to(self, chunk: Chunk, step: int, visible: Visible) -> int | End:
        """Return the next row; a number that is left out is a missing chunk."""
        number = _place(chunk)
        row = self._first(number + step, visible)
        if row is not None:
            return row
        beyond = (self._first(place, visible) for place in self._outwards(number, step))
        return self._edge if all(each is None for each in beyond) else "missing"


class StartLine(Line):
    """Chunks by the offset of their first character: the neighbours are the nearest ones."""

    def next_to(self, chunk: Chunk, step: int, visible: Visible) -> int | End:
        """Return the next row; a gap of more than `MOST_STRIPPED` is a missing chunk."""
        start, end = chunk.start or 0, chunk.end or 0
        for place in self._outwards(start, step):
            row = self._first(place, visible)
            if row is not None:
                gap = place - end if step > 0 else start - (self._chunks[row].end or 0)
                return "missing" if gap > MOST_STRIPPED else row
        return "missing" if step < 0 and start > MOST_STRIPPED else self._edge


def _place(chunk: Chunk) -> int:
    place = chunk.start if chunk.number is None else chunk.number
    return place or 0
