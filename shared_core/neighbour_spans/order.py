"""The chunks of one text in order: by number, or by offset."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, TypeAlias

import numpy as np

from shared_core.arrays import Bools
from shared_core.neighbour_spans.chunks import LONGEST_INDENT, Chunk, End, overlap_length
from shared_core.types import Passage

Place: TypeAlias = tuple[int, int]
"""Number and 0; or start and length: the longer of two chunks that start alike comes later."""

MOST_STRIPPED = 100
"""Most characters that a splitter is taken to have stripped between two chunks; a wider gap means
that a chunk is missing."""

MOST_STRIPPED_AMONG_LOST = LONGEST_INDENT + 2
"""The same where a document has chunks of unknown start, one of which may lie in the gap."""


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
        return int(np.count_nonzero(self.allowed[np.array(rows[:there], np.intp)]))


class ChunkOrder:
    """Rows of the chunks of one text by number: the neighbours are one lower and one higher.

    Parameters
    ----------
    chunks
        Row -> chunk.
    edge
        What lies beyond the first and the last chunk.
    """

    def __init__(self, chunks: Mapping[int, Chunk], edge: End = "document") -> None:
        self._chunks = chunks
        self._edge = edge
        self._places: dict[int, Place] = {}
        self._rows: dict[Place, list[int]] = {}
        self._sorted: list[Place] = []
        self._texts: dict[int, str] = {}
        self._differing: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._places)

    def put(self, row: int) -> None:
        """Add the chunk of a row, the rows in ascending order."""
        self._enter(row, (self._chunks[row].number or 0, 0))

    def at(self, chunk: Chunk) -> list[int]:
        """Return the rows of the number, or of the start, of a chunk."""
        return self._beginning_at(chunk.number or 0)

    def dispute(self, visible: Visible) -> tuple[Chunk, Chunk] | None:
        """Return two visible chunks at one place that contradict each other; None if none do.

        Rows left behind by an update are not visible, so they dispute nothing.
        """
        for begin in list(self._differing):
            chunks = [self._chunks[row] for row in self._beginning_at(begin) if visible(row)]
            for shorter, chunk in pairwise(chunks):
                if not self._agree(shorter, chunk):
                    return shorter, chunk
        return None

    def next_to(self, row: int, step: int, visible: Visible) -> int | End:
        """Return the visible row after a row (`step` 1) or before it (-1), or what lies there."""
        own = self._places.get(row)
        if own is None:
            return "missing"
        for place in self._beyond(own, step):
            other = next(filter(visible, list(self._rows[place])), None)
            if other is not None:
                pair = (row, other) if step > 0 else (other, row)
                return "missing" if self._has_hole(*pair, visible) else other
        return self._end(own, step)

    def _enter(self, row: int, place: Place) -> None:
        text = self._chunks[row].text
        if self._texts.setdefault(place[0], text) != text:
            self._differing[place[0]] = None
        self._rows.setdefault(place, []).append(row)
        self._places[row] = place

    def _beginning_at(self, begin: int) -> list[int]:
        """Return the rows of a number or of a start, the shortest text first."""
        places = self._ordered()
        there = places[bisect_left(places, (begin,)) : bisect_left(places, (begin + 1,))]
        return [row for place in there for row in list(self._rows[place])]

    def _beyond(self, place: Place, step: int) -> Iterator[Place]:
        """Yield the places beyond a place, the nearest first."""
        places = self._ordered()
        at = bisect_right(places, place) if step > 0 else bisect_left(places, place) - 1
        while 0 <= at < len(places):
            yield places[at]
            at += step

    def _ordered(self) -> list[Place]:
        places = self._sorted
        if len(places) < len(self._rows):
            places = self._sorted = sorted(self._rows)
        return places

    def _agree(self, shorter: Chunk, longer: Chunk) -> bool:
        """Return whether two chunks at one place can be of one text."""
        return shorter.text == longer.text

    def _has_hole(self, first: int, last: int, visible: Visible) -> bool:
        """Return whether a chunk is missing between a row and the next one that is visible."""
        return self._places[last][0] - self._places[first][0] > 1

    def _end(self, place: Place, step: int) -> End:
        """Return what lies beyond the first or the last chunk that is visible."""
        return self._edge


class OffsetOrder(ChunkOrder):
    """Chunks by the offset of their first character: the neighbours are the nearest ones.

    A chunk without an offset, of which the splitter lost track, follows the chunk in the row before
    it if it overlaps that one, as nearly all do that splitters lose. Otherwise its place is not
    known, nor where the document ends. A gap of more than `MOST_STRIPPED`, or with the text of a
    row that is not visible, is a missing chunk.
    """

    _most_stripped = MOST_STRIPPED

    def put(self, row: int) -> None:
        """Add the chunk of a row, the rows in ascending order."""
        chunk, before = self._chunks[row], self._places.get(row - 1)
        if chunk.start is not None:
            self._enter(row, (chunk.start, len(chunk.text)))
            return
        self._most_stripped = MOST_STRIPPED_AMONG_LOST
        if before and (overlap := overlap_length(self._chunks[row - 1].text, chunk.text)):
            self._enter(row, (sum(before) - overlap, len(chunk.text)))
        else:
            self._edge = "missing"

    def at(self, chunk: Chunk) -> list[int]:
        """Return the rows of the start of a chunk; without a start, those of its text."""
        if chunk.start is not None:
            return self._beginning_at(chunk.start)
        return [row for row in list(self._places) if self._chunks[row].text == chunk.text]

    def part(self, rows: Iterable[int]) -> Self:
        """Return an order of those of the rows that it holds, whose edges are not known."""
        order = type(self)(self._chunks, "missing")
        order._most_stripped = self._most_stripped
        for row in rows:
            if (place := self._places.get(row)) is not None:
                order._enter(row, place)
        return order

    def _agree(self, shorter: Chunk, longer: Chunk) -> bool:
        return longer.text.startswith(shorter.text)  # as a line that a splitter repeats

    def _has_hole(self, first: int, last: int, visible: Visible) -> bool:
        left, right = sum(self._places[first]), self._places[last][0]
        if right <= left:
            return False
        for place in self._beyond(self._places[first], 1):
            if place >= self._places[last]:
                break
            for row in list(self._rows[place]):
                inside = self._chunks[row].text[max(0, left - place[0]) : right - place[0]]
                # An update leaves rows with offsets of another text, which is not missing.
                known = row < visible.size and inside.strip()
                if known and self._continues(first, row) and self._continues(row, last):
                    return True
        one, other = self._chunks[first], self._chunks[last]
        found = one.start is not None or not overlap_length(one.text, other.text)
        return found and right - left > self._most_stripped

    def _continues(self, one: int, other: int) -> bool:
        """Return whether two chunks have the same text where they overlap."""
        text = self._chunks[other].text
        rest = self._chunks[one].text[self._places[other][0] - self._places[one][0] :]
        return rest[: len(text)] == text[: len(rest)]

    def _end(self, place: Place, step: int) -> End:
        return "missing" if step < 0 and place[0] > self._most_stripped else self._edge
