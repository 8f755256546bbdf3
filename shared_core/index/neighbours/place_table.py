"""Which passages stand next to which: by number, by start, or by links."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Sequence

from shared_core.arrays import Bools
from shared_core.expansion import Chunk
from shared_core.forking import forkable
from shared_core.index.metadata import Visible
from shared_core.index.neighbours.lines import Numbers, Starts
from shared_core.index.neighbours.links import LinkTable
from shared_core.index.neighbours.places import ChunkReader
from shared_core.types import Passage

MOST_READERS = 4
"""Readers of one index that a table is kept for; the least recently used makes room."""


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
        Which passages name which as their neighbours.
    """

    def __init__(self, reader: ChunkReader) -> None:
        self.reader = reader
        self.size = 0
        self.chunks: dict[int, Chunk] = {}
        self.links = LinkTable()
        self._numbers: dict[str, Numbers] = {}
        self._starts: dict[str, Starts] = {}
        self._sections: dict[tuple[str, tuple[str, ...] | None], list[int]] = {}
        self._warned = False

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
            self.links.put(row, links)
        if chunk.number is not None:
            numbers = self._numbers.get(chunk.document)
            if numbers is None:
                numbers = self._numbers[chunk.document] = Numbers(self.chunks)
            numbers.put(chunk.number, row)
        elif links is None or not links.any:
            if chunk.start is None or not chunk.text:
                return
            starts = self._starts.get(chunk.document)
            if starts is None:
                starts = self._starts[chunk.document] = Starts(self.chunks)
            starts.put(chunk.start, row)
        self._sections.setdefault((chunk.document, chunk.heading), []).append(row)

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows that stand where a chunk does."""
        if chunk.number is not None:
            numbers = self._numbers.get(chunk.document)
            return () if numbers is None else numbers.rows.get(chunk.number, ())
        starts = self._starts.get(chunk.document)
        if starts is None or chunk.start is None:
            return ()
        return starts.rows.get(chunk.start, ())

    def line(self, chunk: Chunk, visible: Visible) -> Numbers | Starts | None:
        """Return the line of chunks that a chunk is in, by number or by start.

        If chunks of different text are in one place, several texts share the name of the
        document. Its starts then count within sections, if those under one heading do not
        conflict; otherwise no chunk of the document has a line, not even one whose place is
        unique: the chunk next to it may be of another text.

        Parameters
        ----------
        chunk
            A chunk of the table.
        visible
            What is not is treated as if it were not there.

        Returns
        -------
        Numbers or Starts or None
            None if the chunk has no place, or if texts conflict; this is warned of once.
        """
        if chunk.number is not None:
            line: Numbers | Starts | None = self._numbers.get(chunk.document)
        else:
            line = None if chunk.start is None else self._starts.get(chunk.document)
        dispute = None if line is None else line.dispute(visible)
        if dispute and isinstance(line, Starts) and len(self.section(chunk)) < line.size:
            line = self._section_starts(chunk, visible)
            dispute = line.dispute(visible)
        if dispute is None:
            return line
        self._warn(*dispute)
        return None

    def _section_starts(self, chunk: Chunk, visible: Visible) -> Starts:
        line = Starts(self.chunks, edge="missing")
        for row in list(self.section(chunk)):
            start = self.chunks[row].start
            if start is not None and self.chunks[row].number is None and visible(row):
                line.put(start, row)
        return line

    def _warn(self, one: Chunk, other: Chunk) -> None:
        if self._warned:
            return
        self._warned = True
        place = f"start at {one.start}" if one.number is None else f"are number {one.number}"
        warnings.warn(
            f"{one.id!r} and {other.id!r} both {place} of document {one.document!r}, so several "
            "texts go by this name and their chunks get no neighbours (other documents may be "
            "like it): name the metadata key that tells the texts apart with "
            "ChunkKeys(document=...), or number the chunks of a document in their order",
            stacklevel=2,
        )

    def section(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows of the chunks under a chunk's heading."""
        return self._sections.get((chunk.document, chunk.heading), ())


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
