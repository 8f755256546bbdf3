"""The chunks of one text in order: by number, or by offset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from shared_core.neighbour_spans.chunks import LONGEST_INDENT, Chunk, overlap_length

Place: TypeAlias = tuple[int, int]
"""Number and 0; or start and length: the longer of two chunks that start alike comes later."""

MOST_STRIPPED = 100
"""Most characters that a splitter is taken to have stripped between two chunks; a wider gap means
that a chunk is missing."""

MOST_STRIPPED_AMONG_LOST = LONGEST_INDENT + 2
"""The same where a text has chunks of unknown start, one of which may lie in the gap."""


class ChunkOrder:
    """Rows of the chunks of one text by number: the neighbours are one lower and one higher.

    Parameters
    ----------
    chunks
        By row.
    rows
        Rows of the chunks of the text, ascending.
    """

    def __init__(self, chunks: Sequence[Chunk], rows: Iterable[int]) -> None:
        self._chunks = chunks
        self._places: dict[int, Place] = {}
        for row in rows:
            if (place := self._place(row)) is not None:
                self._places[row] = place
        self._rows: dict[Place, list[int]] = {}
        for row, place in self._places.items():
            self._rows.setdefault(place, []).append(row)
        self._sorted = sorted(self._rows)

    @cached_property
    def dispute(self) -> tuple[Chunk, Chunk] | None:
        """Two chunks at one place that contradict each other; None if none do."""
        ordered = [row for place in self._sorted for row in self._rows[place]]
        for one, other in pairwise(ordered):
            shorter, longer = self._chunks[one], self._chunks[other]
            if self._places[one][0] == self._places[other][0] and not self._agree(shorter, longer):
                return shorter, longer
        return None

    def at(self, chunk: Chunk) -> list[int]:
        """Return the rows of the number, or of the start, of a chunk; or else those of its text."""
        begin = chunk.start if chunk.number is None else chunk.number
        if begin is None:
            return [row for row in self._places if self._chunks[row].text == chunk.text]
        return [row for row, place in self._places.items() if place[0] == begin]

    def next_to(self, row: int, step: int) -> int | None:
        """Return the row after a row (`step` 1) or before it (-1); None if none is known."""
        if (own := self._places.get(row)) is None:
            return None
        at = bisect_left(self._sorted, own) + step
        if not 0 <= at < len(self._sorted):
            return None
        other = self._rows[self._sorted[at]][0]
        first, last = (row, other) if step > 0 else (other, row)
        return None if self._has_hole(first, last) else other

    def _place(self, row: int) -> Place | None:
        return self._chunks[row].number or 0, 0

    def _agree(self, shorter: Chunk, longer: Chunk) -> bool:
        """Return whether two chunks at one place can be of one text."""
        return shorter.text == longer.text

    def _has_hole(self, first: int, last: int) -> bool:
        """Return whether a chunk is missing between two rows."""
        return self._places[last][0] - self._places[first][0] > 1


class OffsetOrder(ChunkOrder):
    """Chunks by the offset of their first character: the neighbours are the nearest ones.

    A chunk without an offset, of which the splitter lost track, follows the chunk in the row before
    it if it overlaps that one, as nearly all do that splitters lose. Otherwise its place is not
    known. A gap of more than `MOST_STRIPPED` is a missing chunk.
    """

    _most_stripped = MOST_STRIPPED

    def _place(self, row: int) -> Place | None:
        chunk, before = self._chunks[row], self._places.get(row - 1)
        if chunk.start is not None:
            return chunk.start, len(chunk.text)
        self._most_stripped = MOST_STRIPPED_AMONG_LOST
        if before and (overlap := overlap_length(self._chunks[row - 1].text, chunk.text)):
            return sum(before) - overlap, len(chunk.text)
        return None

    def _agree(self, shorter: Chunk, longer: Chunk) -> bool:
        return longer.text.startswith(shorter.text)  # as a line that a splitter repeats

    def _has_hole(self, first: int, last: int) -> bool:
        one, other = self._chunks[first], self._chunks[last]
        found = one.start is not None or not overlap_length(one.text, other.text)
        return found and self._places[last][0] - sum(self._places[first]) > self._most_stripped
