"""The chunks of one text in the order of their starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, End
from shared_core.neighbour_spans.lines import Line, Visible
from shared_core.neighbour_spans.seams import (
    MOST_STRIPPED,
    MOST_STRIPPED_AMONG_LOST,
    begins,
    continues,
    fills,
    first_apart,
)

Place: TypeAlias = tuple[int, int]
"""Start and length: the longer of two chunks that start alike comes later."""

_Run: TypeAlias = tuple[list[int | End], dict[str, int]]
"""Rows from one with a start to the next, and the place in it of each text without a start."""

_NOWHERE = -1, -1


class StartLine(Line):
    """Chunks by the offset of their first character: the neighbours are the nearest ones.

    A chunk without an offset, of which the splitter lost track, lies after the chunk in the row
    before it, if that is borne out: the next chunk by offset must have come later, and with the two
    around it, it must be as long as the text between their offsets; at the end of a document, it
    must overlap the chunk before it.

    Parameters
    ----------
    chunks, edge
        As in `Line`.
    doubt
        Called with a chunk without an offset where this is not borne out.
    """

    def __init__(
        self,
        chunks: Mapping[int, Chunk],
        doubt: Callable[[Chunk], None],
        edge: End = "document",
    ) -> None:
        super().__init__(chunks, edge)
        self._doubt = doubt
        self._lost: dict[Place, list[int]] = {}
        self._after: dict[int, Place] = {}

    def put(self, row: int) -> None:
        """Add the chunk of a row; without a start it goes where the row before it is."""
        if self._chunks[row].start is not None:
            super().put(row)
        else:
            self._lose(row, self._place_of(row - 1))

    def part(self, rows: Sequence[int]) -> StartLine:
        """Return a line of some of these rows; what lies beyond its edges is not known."""
        line = StartLine(self._chunks, self._doubt, edge="missing")
        for row in rows:
            if row in self._after:
                line._lose(row, self._after[row])
            else:
                line.put(row)
        return line

    def holds(self, row: int) -> bool:
        """Return whether a row is in the line."""
        return row in self._after if self._chunks[row].start is None else super().holds(row)

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows of the start of a chunk; without a start, those of its text."""
        if chunk.start is not None:
            return super().at(chunk)
        rows = [row for there in list(self._lost.values()) for row in list(there)]
        return [row for row in rows if self._chunks[row].text == chunk.text]

    def next_to(self, row: int, step: int, visible: Visible) -> int | End:
        """Return the next row.

        A gap of more than `MOST_STRIPPED`, or with the text of a row that is not visible, is a
        missing chunk.
        """
        chunk = self._chunks[row]
        if chunk.start is None:
            return self._next_to_lost(row, step, visible)
        other = self._nearest(_place(chunk), step, visible)
        if step > 0:
            return self._run(row, other, visible)[0][1]
        if other is not None:
            return self._run(other, row, visible)[0][-2]
        if chunk.start > self._most_stripped:
            return "missing"
        return self._end(_place(chunk), -1, visible)

    def _next_to_lost(self, row: int, step: int, visible: Visible) -> int | End:
        """Return what is next to a chunk without a start."""
        chunk, place = self._chunks[row], self._after.get(row, _NOWHERE)
        first = self._first(place, visible)
        if first is not None:
            run, places = self._run(first, self._nearest(place, 1, visible), visible)
            if chunk.text in places:
                return run[places[chunk.text] + step]
        if first is not None or place == _NOWHERE:  # otherwise what came before it is hidden
            self._doubt(chunk)
        return "missing"

    def _end(self, place: Place, step: int, visible: Visible) -> End:
        """Return what lies beyond the first or the last chunk with a start that is visible."""
        lost = (
            rows
            for after, rows in list(self._lost.items())
            if after == _NOWHERE or (after > place if step > 0 else after < place)
        )
        return "missing" if any(any(map(visible, list(rows))) for rows in lost) else self._edge

    @property
    def _most_stripped(self) -> int:
        return MOST_STRIPPED_AMONG_LOST if self._lost else MOST_STRIPPED

    def _nearest(self, place: Place, step: int, visible: Visible) -> int | None:
        """Return the next visible row with a start."""
        rows = (self._first(each, visible) for each in self._outwards(place, step))
        return next((row for row in rows if row is not None), None)

    def _run(self, first: int, last: int | None, visible: Visible) -> _Run:
        """Return a row, those without a start after it, and the next one with a start.

        The last answer is kept for a query, as a walk asks for it again at each of these rows.
        """
        kept: tuple[int, int | None, _Run] | None = visible.kept.get(self)
        if kept is None or kept[0] != first or kept[1] != last:
            between = self._between(first, last, visible)
            end = self._end(_place(self._chunks[first]), 1, visible) if last is None else last
            run = [first, *between, end]
            places = {
                self._chunks[row].text: at
                for at, row in enumerate(between, 1)
                if not isinstance(row, str)
            }
            visible.kept[self] = kept = first, last, (run, places)
        return kept[2]

    def _between(self, first: int, last: int | None, visible: Visible) -> list[int | End]:
        """Return the rows without a start between two rows with one; "missing" where text is.

        Parameters
        ----------
        first, last
            Neighbours by start; `last` None: nothing starts after `first`.
        visible
            Of the rows that are not visible, those that fit with the others are missing.
        """
        lost = self._lost_after(first, visible)
        there = self._lost_after(first, Visible(visible.size)) if self._lost else lost
        for rows in (there, lost) if len(there) > len(lost) else (lost,):
            if rows and self._fit(first, rows.values(), last):
                found: list[int | End] = [lost.get(text, "missing") for text in rows]
                if last is None:
                    while found and found[-1] == "missing":
                        found.pop()
                elif self._hides_next(first, rows.values(), last, visible):
                    found.append("missing")
                return found
        gap = 0
        if last is not None:
            gap = (self._chunks[last].start or 0) - (self._chunks[first].end or 0)
        if lost and (last is None or gap > 0):
            chunks = [self._chunks[row] for row in (first, *lost.values())]
            self._doubt(first_apart(chunks) or chunks[1])
            return ["missing"]
        over = last is not None and gap > 0 and self._passes_over(first, last, visible)
        return ["missing"] if over or gap > self._most_stripped else []

    def _fit(self, first: int, lost: Iterable[int], last: int | None) -> bool:
        """Return whether rows without a start can be all that lies between two rows with one."""
        chunks = [self._chunks[row] for row in (first, *lost)]
        if last is None:
            return first_apart(chunks) is None
        return max(lost) < last and fills([*chunks, self._chunks[last]])

    def _hides_next(self, first: int, lost: Iterable[int], last: int, visible: Visible) -> bool:
        """Return whether a row that is not visible starts where the rows without a start end."""
        place = next(self._outwards(_place(self._chunks[first]), 1))
        if place >= _place(self._chunks[last]):
            return False
        rows = [row for row in self._at(place) if row < visible.size]
        return any(self._fit(first, lost, row) for row in rows)

    def _passes_over(self, first: int, last: int, visible: Visible) -> bool:
        """Return whether a row that is filtered out or deleted has text between two rows.

        Only one whose text agrees with both: an update leaves rows with offsets of another text.
        """
        one, other = self._chunks[first], self._chunks[last]
        left, right = one.end or 0, other.start or 0
        for place in self._outwards(_place(one), 1):
            if place >= _place(other):
                return False
            for row in (row for row in self._at(place) if row < visible.size):
                chunk = self._chunks[row]
                inside = chunk.text[max(0, left - place[0]) : max(0, right - place[0])]
                if inside.strip() and continues(one, chunk) and continues(chunk, other):
                    return True
        return False

    def _lost_after(self, first: int, visible: Visible) -> dict[str, int]:
        """Return the visible rows without a start after a row with one, by text."""
        rows: dict[str, int] = {}
        for row in filter(visible, list(self._lost.get(_place(self._chunks[first]), ()))):
            rows.setdefault(self._chunks[row].text, row)
        return rows

    def _lose(self, row: int, place: Place) -> None:
        self._after[row] = place
        self._lost.setdefault(place, []).append(row)
        self.size += 1

    def _place_of(self, row: int) -> Place:
        if row not in self._chunks or not self.holds(row):
            return _NOWHERE
        return self._after.get(row) or _place(self._chunks[row])

    def _at(self, place: Place) -> list[int]:
        """Return the rows with a start at a place."""
        rows = list(self._rows.get(place[0], ()))
        if place[0] not in self._differing:
            return rows
        return [row for row in rows if len(self._chunks[row].text) == place[1]]

    def _first(self, place: Place, visible: Visible) -> int | None:
        return next(filter(visible, self._at(place)), None)

    def _outwards(self, place: Place, step: int) -> Iterator[Place]:
        """Yield the places beyond a place, the nearest first."""
        alike = self._places(place[0])[::step]
        yield from (each for each in alike if (each > place if step > 0 else each < place))
        for start in self._beyond(place[0], step):
            yield from self._places(start)[::step]

    def _places(self, start: int) -> list[Place]:
        """Return the places of a start, in order."""
        rows = self._rows.get(start, ())
        if start not in self._differing:
            return [(start, len(self._chunks[row].text)) for row in rows[:1]]
        return sorted({(start, len(self._chunks[row].text)) for row in list(rows)})

    def _agree(self, one: Chunk, other: Chunk) -> bool:
        return begins(one, other)


def _place(chunk: Chunk) -> Place:
    return chunk.start or 0, len(chunk.text)
