"""Where passages are in their documents: by number, by start, or by links."""

from __future__ import annotations

import threading
import warnings
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from shared_core.arrays import Bools
from shared_core.neighbour_spans.chunks import Chunk
from shared_core.neighbour_spans.lines import Line, NumberLine, Visible
from shared_core.neighbour_spans.links import LinkTable
from shared_core.neighbour_spans.places import ChunkReader
from shared_core.neighbour_spans.start_line import StartLine
from shared_core.types import Passage

MOST_READERS = 4
"""Most readers per index with a table of their own; the least recently used one makes room."""


class PlaceTable:
    """The places of all rows. It only grows; each look-up says which rows are visible.

    Parameters
    ----------
    reader
        Reads passages as chunks.

    Attributes
    ----------
    size
        Number of rows taken in so far.
    chunks
        Row -> chunk.
    links
        Which passages name which as their neighbours.
    linked_documents
        Documents of the passages that name a neighbour.
    """

    def __init__(self, reader: ChunkReader) -> None:
        self.reader = reader
        self.size = 0
        self.chunks: dict[int, Chunk] = {}
        self.links = LinkTable()
        self.linked_documents: set[str] = set()
        self._lines: dict[tuple[str, bool], Line] = {}
        self._sections: dict[tuple[str, tuple[str, ...] | None], array[int]] = {}
        self._warned = False
        self._doubted = False

    @property
    def knows_places(self) -> bool:
        """Whether the place of any passage is known."""
        return bool(self._sections)

    def grow(self, passages: Sequence[Passage], rows: Iterable[int], size: int) -> None:
        """Add the passages of `rows`, all of them at or beyond the present size.

        Raises
        ------
        ValueError
            If the place that a passage gives is invalid. The passages before it are added.
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
        linked = links is not None and links.any
        has_start = chunk.start is not None and chunk.text != ""
        placed = chunk.number is not None or (has_start and not linked)
        line = self._document_line(chunk)
        if line is None and placed:
            line = self._begun_line(row)
            self._lines[chunk.document, chunk.number is None] = line
        if line and chunk.start is None and chunk.text and not linked:
            placed = True  # where it came is all that is known of it
        if line and placed:
            line.put(row)
        if linked:
            self.linked_documents.add(chunk.document)
        if placed or linked:
            section = self._sections.setdefault((chunk.document, chunk.heading), array("q"))
            section.append(row)

    def _begun_line(self, row: int) -> Line:
        """Return the line that a row is the first one in, save for lost chunks before it."""
        if self.chunks[row].number is not None:
            return NumberLine(self.chunks)
        line = StartLine(self.chunks, self._warn_of_doubt)
        for earlier in self._lost_before(row):
            line.put(earlier)
        return line

    def _lost_before(self, row: int) -> range:
        """Return the rows that came just before, of the same document and without any place."""
        first, document = row, self.chunks[row].document
        while (chunk := self.chunks.get(first - 1)) is not None and (
            chunk.document == document and chunk.number is None and chunk.start is None
        ):
            if not chunk.text or self.links.of(first - 1).any:
                break
            first -= 1
        return range(first, row)

    def _document_line(self, chunk: Chunk) -> Line | None:
        return self._lines.get((chunk.document, chunk.number is None))

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows of the number, or of the start, of a chunk."""
        line = self._document_line(chunk)
        return () if line is None else line.at(chunk)

    def line(self, chunk: Chunk, visible: Visible) -> Line | None:
        """Return the line that a chunk is in, by number or by start.

        If chunks of one place contradict each other, several texts share the id of the document;
        two that start alike do not if one begins the other.
        Starts are then read within sections, if those under the chunk's heading do not conflict.
        Otherwise no chunk of the document has a line, not even one whose place is unique: the
        chunk next to it may belong to another text.

        Parameters
        ----------
        chunk
            A chunk of the table.
        visible
            Rows that are not visible are treated as absent.

        Returns
        -------
        Line or None
            None if the chunk has no place, or if texts conflict, which gives one warning.
        """
        line = self._document_line(chunk)
        dispute = None if line is None else line.dispute(visible)
        if dispute and isinstance(line, StartLine):
            by_start = line
            section = [r for r in list(self.section(chunk)) if by_start.holds(r)]
            if len(section) < by_start.size:
                line = by_start.part(section)
                dispute = line.dispute(visible)
        if dispute is None:
            return line
        self._warn(*dispute)
        return None

    def _warn(self, one: Chunk, other: Chunk) -> None:
        if self._warned:
            return
        self._warned = True
        place = f"start at {one.start}" if one.number is None else f"are number {one.number}"
        warnings.warn(
            f"{one.id!r} and {other.id!r} both {place} of document {one.document!r}, so several "
            "texts share this document id and their chunks get no neighbours (other documents may "
            "be affected, too): name the metadata key that distinguishes the texts with "
            "ChunkKeys(document=...), or number the chunks of each document in order",
            stacklevel=2,
        )

    def _warn_of_doubt(self, chunk: Chunk) -> None:
        if self._doubted:
            return
        self._doubted = True
        warnings.warn(
            f"the start of {chunk.id!r} in document {chunk.document!r} is not known, nor does its "
            "text show that it follows the chunk that came before it, so spans end there (other "
            "chunks may be affected, too): number the chunks of each document in order",
            stacklevel=2,
        )

    def section(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows under the heading of a chunk."""
        return self._sections.get((chunk.document, chunk.heading), ())


class Places:
    """The place tables of an index, which is changed and searched from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passages: Sequence[Passage] = ()
        self._tables: list[PlaceTable] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # a copy reads its passages itself

    def table(
        self, passages: Sequence[Passage], size: int, alive: Bools | None, reader: ChunkReader
    ) -> PlaceTable:
        """Return a table that holds at least the given rows.

        The tables are kept from call to call. They are dropped when `passages` is another object
        than before; of more than `MOST_READERS` readers the least recently used loses its table.

        Parameters
        ----------
        passages
            By row; only ever appended to.
        size
            Number of rows that the table must hold.
        alive
            Whether each row exists, not deleted, shape (size,); None: all do.
        reader
            Reads passages as chunks; readers that are equal share a table.

        Raises
        ------
        ValueError
            If the place that a passage gives is invalid.
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
                self._tables = others  # growth cut short leaves a row that would be added twice
                try:
                    table.grow(passages, rows, size)
                except ValueError:
                    self._tables = last_used
                    raise
            self._tables = last_used
            return table
