"""The chunks of one text in their order: by number, or by start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping

from shared_core.expansion import Chunk, End
from shared_core.index.metadata import Visible

MOST_STRIPPED = 100
"""Characters between two chunks up to which a splitter has stripped them; beyond, a chunk is
missing there."""


class Line:
    """Rows by their place in one text.

    Parameters
    ----------
    chunks
        Row -> the chunk that stands there.
    edge
        What lies beyond the first and the last chunk.

    Attributes
    ----------
    rows
        Place -> rows of the chunks there.
    size
        Number of rows.
    """

    def __init__(self, chunks: Mapping[int, Chunk], edge: End = "document") -> None:
        self.rows: dict[int, list[int]] = {}
        self.size = 0
        self._chunks = chunks
        self._edge = edge
        self._disputed: dict[int, None] = {}
        self._sorted: list[int] = []

    def put(self, place: int, row: int) -> None:
        """Take in the chunk of a row."""
        there = self.rows.setdefault(place, [])
        if there and self._chunks[there[0]].text != self._chunks[row].text:
            self._disputed[place] = None
        there.append(row)
        self.size += 1

    def dispute(self, visible: Visible) -> tuple[Chunk, Chunk] | None:
        """Return two visible chunks of different text in one place; None if there are none.

        Rows that an update has left behind are not visible, so they dispute nothing.
        """
        for place in list(self._disputed):
            chunks = (self._chunks[row] for row in list(self.rows[place]) if visible(row))
            first = next(chunks, None)
            other = next((each for each in chunks if first and each.text != first.text), None)
            if first is not None and other is not None:
                return first, other
        return None

    def _first(self, place: int, visible: Visible) -> int | None:
        return next(filter(visible, list(self.rows.get(place, ()))), None)

    def _outwards(self, place: int, step: int) -> Iterator[int]:
        """Yield the places beyond one, the nearest first."""
        if len(self._sorted) < len(self.rows):
            self._sorted = sorted(self.rows)
        places = self._sorted
        at = bisect_right(places, place) if step > 0 else bisect_left(places, place) - 1
        while 0 <= at < len(places):
            yield places[at]
            at += step


class Numbers(Line):
    """Chunks by number: neighbours are those one lower and one higher."""

    def beside(self, number: int, step: int, visible: Visible) -> int | End:
        """Return the visible row next to a number, or what lies there."""
        row = self._first(number + step, visible)
        if row is not None:
            return row
        beyond = (self._first(place, visible) for place in self._outwards(number, step))
        return self._edge if all(each is None for each in beyond) else "missing"


class Starts(Line):
    """Chunks by the offset of their first character: neighbours are those that come next."""

    def beside(self, chunk: Chunk, step: int, visible: Visible) -> int | End:
        """Return the visible row next to a chunk of the line, or what lies there."""
        start, end = chunk.start or 0, chunk.end or 0
        for place in self._outwards(start, step):
            row = self._first(place, visible)
            if row is not None:
                gap = place - end if step > 0 else start - (self._chunks[row].end or 0)
                return "missing" if gap > MOST_STRIPPED else row
        return "missing" if step < 0 and start > MOST_STRIPPED else self._edge
