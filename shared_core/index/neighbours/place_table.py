"""Which passages stand next to which: by number, by start, or by links."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shared_core.arrays import Bools
from shared_core.expansion import Chunk, End
from shared_core.forking import forkable
from shared_core.index.metadata import Visible
from shared_core.index.neighbours.places import ChunkReader
from shared_core.types import Passage

MOST_STRIPPED = 100
"""Characters between two chunks up to which a splitter has stripped them; beyond, a chunk is
missing there."""

MOST_READERS = 4
"""Readers of one index that a table is kept for; the least recently used makes room."""


@dataclass(slots=True)
class _Document:
    """Rows of the chunks of one document: by number, and by start and end for those without."""

    numbers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    starts: list[tuple[int, int, int]] = field(default_factory=list)
    ordered: list[tuple[int, int, int]] = field(default_factory=list)
    first: int = 0
    last: int = -1

    def put(self, number: int, row: int) -> None:
        self.first = min(self.first, number) if self.numbers else number
        self.last = max(self.last, number) if self.numbers else number
        self.numbers[number] = (*self.numbers.get(number, ()), row)

    def by_start(self) -> list[tuple[int, int, int]]:
        if len(self.ordered) < len(self.starts):
            self.ordered = sorted(self.starts)
        return self.ordered


class PlaceTable:
    """Which rows stand where. It only ever grows: who may be seen is asked at each step.

    Parameters
    ----------
    reader
        Tells which chunk a passage is.

    Attributes
    ----------
    size
        Rows from here on are not in it yet.
    chunks
        Row -> the chunk that stands there.
    links
        Row -> ids of the passages before and after it, where it names any.
    """

    def __init__(self, reader: ChunkReader) -> None:
        self.reader = reader
        self.size = 0
        self.chunks: dict[int, Chunk] = {}
        self.links: dict[int, tuple[str | None, str | None]] = {}
        self._documents: dict[str, _Document] = {}
        self._sections: dict[tuple[str, tuple[str, ...] | None], list[int]] = {}

    @property
    def knows_places(self) -> bool:
        """Whether any passage has told its place."""
        return bool(self._sections)

    def grow(self, passages: Sequence[Passage], rows: Iterable[int], size: int) -> None:
        """Take in the passages of `rows`, all of them at or beyond the present size.

        Raises
        ------
        ValueError
            If a passage tells a place that is none. Those before it are in.
        """
        for row in rows:
            self._put(passages[row], row)
            self.size = row + 1
        self.size = size

    def _put(self, passage: Passage, row: int) -> None:
        chunk, links = self.reader.chunk(passage), self.reader.links(passage)
        self.chunks[row] = chunk
        if links is not None:
            self.links[row] = links
        if chunk.number is not None:
            self._document(chunk.document).put(chunk.number, row)
        elif chunk.start is not None and chunk.text:
            end = chunk.start + len(chunk.text)
            self._document(chunk.document).starts.append((chunk.start, end, row))
        elif links is None:
            return
        self._sections.setdefault((chunk.document, chunk.heading), []).append(row)

    def _document(self, id: str) -> _Document:
        found = self._documents.get(id)
        if found is None:
            found = self._documents[id] = _Document()
        return found

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows that stand where a chunk does."""
        document = self._documents.get(chunk.document)
        if document is None:
            return ()
        if chunk.number is not None:
            return document.numbers.get(chunk.number, ())
        if chunk.start is None:
            return ()
        ordered = document.by_start()
        at = bisect_left(ordered, (chunk.start,))
        there = at < len(ordered) and ordered[at][0] == chunk.start
        return _same_start(ordered, at, 1) if there else ()

    def beside(self, chunk: Chunk, step: int, visible: Visible) -> Sequence[int] | End:
        """Return the visible rows that stand next to a chunk, or what lies there.

        Parameters
        ----------
        chunk
            A chunk of the table.
        step
            1: after it; -1: before it.
        visible
            What is not is treated as if it were not there.
        """
        document = self._documents.get(chunk.document)
        if document is None:
            return "missing"
        if chunk.number is not None:
            return _next_number(document, chunk.number, step, visible)
        if chunk.start is not None:
            return _next_start(document.by_start(), chunk, step, visible)
        return "missing"

    def section(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows of the chunks under a chunk's heading."""
        return self._sections.get((chunk.document, chunk.heading), ())


def _next_number(
    document: _Document, number: int, step: int, visible: Visible
) -> Sequence[int] | End:
    if not document.first <= number + step <= document.last:
        return "document"
    found = [*filter(visible, document.numbers.get(number + step, ()))]
    if found:
        return found
    beyond = [rows for at, rows in list(document.numbers.items()) if (at - number) * step > 0]
    return "missing" if any(visible(row) for rows in beyond for row in rows) else "document"


def _next_start(
    ordered: Sequence[tuple[int, int, int]], chunk: Chunk, step: int, visible: Visible
) -> Sequence[int] | End:
    start, end = chunk.start or 0, chunk.end or 0
    at = bisect_left(ordered, (start if step < 0 else start + 1,)) - (step < 0)
    while 0 <= at < len(ordered) and not visible(ordered[at][2]):
        at += step
    if not 0 <= at < len(ordered):
        return "missing" if step < 0 and start > MOST_STRIPPED else "document"
    gap = ordered[at][0] - end if step > 0 else start - ordered[at][1]
    if gap > MOST_STRIPPED:
        return "missing"
    return [row for row in _same_start(ordered, at, step) if visible(row)]


def _same_start(ordered: Sequence[tuple[int, int, int]], at: int, step: int) -> list[int]:
    rows = []
    first = at
    while 0 <= at < len(ordered) and ordered[at][0] == ordered[first][0]:
        rows.append(ordered[at][2])
        at += step
    return sorted(rows)


class Places:
    """The tables of passages that are added to, compacted and searched from many threads."""

    def __init__(self) -> None:
        self._lock = forkable(threading.Lock())
        self._passages: Sequence[Passage] = ()
        self._tables: list[PlaceTable] = []

    def table(
        self, passages: Sequence[Passage], size: int, alive: Bools | None, reader: ChunkReader
    ) -> PlaceTable:
        """Return a table that holds at least the given rows.

        It is made anew where `passages` is another object than before, or more than `MOST_READERS`
        take turns.

        Parameters
        ----------
        passages
            By row; only ever appended to.
        size
            Number of rows to take in.
        alive
            Those that are not deleted, shape (size,); None: all.
        reader
            Tells which chunk a passage is; those that are equal share a table.

        Raises
        ------
        ValueError
            If a passage tells a place that is none.
        """
        with self._lock:
            if self._passages is not passages:
                self._tables, self._passages = [], passages
            known = (table for table in self._tables if table.reader == reader)
            table = next(known, None) or PlaceTable(reader)
            others = [each for each in self._tables if each is not table]
            last_used = [table, *others][:MOST_READERS]
            first = table.size
            if first < size:
                rows: Sequence[int] = range(first, size)
                if alive is not None:
                    rows = (first + alive[first:size].nonzero()[0]).tolist()
                self._tables = others  # cut short, it holds a row that it would take again
                try:
                    table.grow(passages, rows, size)
                except ValueError:
                    self._tables = last_used
                    raise
            self._tables = last_used
            return table
