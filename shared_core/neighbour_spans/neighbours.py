"""Neighbours among the passages of an index, or of a list."""

from __future__ import annotations

import threading
import warnings
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeAlias

import numpy.typing as npt

from shared_core.arrays import Bools, Vectors
from shared_core.neighbour_spans.chunks import Chunk, End, Neighbourhood
from shared_core.neighbour_spans.order import ChunkOrder, OffsetOrder, Visible
from shared_core.neighbour_spans.places import NUMBER_THEM, ChunkReader, Links
from shared_core.types import Passage
from shared_core.vectors import cosine_similarity, unit_rows

MOST_READERS = 4
"""Most readers per index with a table of their own; the least recently used one makes room."""

_Section: TypeAlias = tuple[str, tuple[str, ...] | None]
"""Document and headings."""

_NO_LINKS = Links()


class ChunkTable:
    """The places and links of chunks by row. It only grows; a look-up says which are visible.

    Attributes
    ----------
    size
        Number of rows taken in so far.
    chunks
        Row -> chunk.
    linked_documents
        Documents of the chunks that name a neighbour.
    """

    def __init__(self) -> None:
        self.size = 0
        self.chunks: dict[int, Chunk] = {}
        self.linked_documents: set[str] = set()
        self._links: dict[int, Links] = {}
        self._naming: dict[tuple[str, int], list[int]] = {}
        self._orders: dict[tuple[str, bool], ChunkOrder] = {}
        self._sections: dict[_Section, array[int]] = {}
        self._warned = False

    @property
    def knows_places(self) -> bool:
        """Whether the place of any chunk is known."""
        return bool(self._sections)

    def put(self, row: int, chunk: Chunk, links: Links | None = None) -> None:
        """Add a chunk and the neighbours that it names, at or beyond the present size."""
        self.chunks[row], self.size = chunk, row + 1
        if links is not None:
            self._links[row] = links
            # Some splitters write one direction only, so links are followed in both.
            for step in (-1, 1):
                if (id := links.id(step)) is not None:
                    self._naming.setdefault((id, -step), []).append(row)
        linked, numbered = self.links(row).any, chunk.number is not None
        if linked:
            self.linked_documents.add(chunk.document)
        key = chunk.document, numbered
        by_start = chunk.text and not linked and (chunk.start is not None or key in self._orders)
        if numbered or by_start:
            if key not in self._orders:
                self._orders[key] = (ChunkOrder if numbered else OffsetOrder)(self.chunks)
            self._orders[key].put(row)
        if numbered or by_start or linked:
            self._sections.setdefault((chunk.document, chunk.heading), array("q")).append(row)

    def links(self, row: int) -> Links:
        """Return the neighbours that a chunk names."""
        return self._links.get(row, _NO_LINKS)

    def naming(self, id: str, step: int) -> Sequence[int]:
        """Return the rows that, by their own links, come after a chunk (`step` 1) or before it."""
        return self._naming.get((id, step), ())

    def at(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows at the place of a chunk."""
        order = self._orders.get((chunk.document, chunk.number is not None))
        return () if order is None else order.at(chunk)

    def section(self, chunk: Chunk) -> Sequence[int]:
        """Return the rows under the heading of a chunk."""
        return self._sections.get((chunk.document, chunk.heading), ())

    def order(self, chunk: Chunk, visible: Visible) -> ChunkOrder | None:
        """Return the order that a chunk is in, by number or by offset.

        If chunks of one place contradict each other, several texts share the id of the document;
        two that start alike do not if one begins the other. Offsets are then read within sections,
        if those under the chunk's heading do not conflict. Otherwise no chunk of the document has
        an order, not even one whose place is unique: the chunk next to it may belong to another
        text.

        Returns
        -------
        ChunkOrder or None
            None if the chunk has no place, or if texts conflict, which gives one warning.
        """
        order = self._orders.get((chunk.document, chunk.number is not None))
        dispute = order and order.dispute(visible)
        if dispute and isinstance(order, OffsetOrder):
            part = order.part(list(self.section(chunk)))
            if len(part) < len(order):
                order, dispute = part, part.dispute(visible)
        if not dispute:
            return order
        if not self._warned:
            self._warned = True
            one, other = dispute
            place = f"start at {one.start}" if one.number is None else f"are number {one.number}"
            warnings.warn(
                f"{one.id!r} and {other.id!r} both {place} of document {one.document!r}, so "
                "several texts share this document id and their chunks get no neighbours (other "
                "documents may be affected, too): name the metadata key that distinguishes the "
                "texts with ChunkKeys(document=...), or number the chunks of each document in "
                "order",
                stacklevel=2,
            )
        return None


class ChunkTables:
    """The chunk tables of an index, which is changed and searched from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._passages: Sequence[Passage] = ()
        self._tables: dict[ChunkReader, ChunkTable] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()  # a copy reads its passages itself

    def table(
        self, passages: Sequence[Passage], size: int, alive: Bools | None, reader: ChunkReader
    ) -> ChunkTable:
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
                self._tables, self._passages = {}, passages
            # A table whose growth is cut short is dropped: it may hold half of a row.
            table = self._tables.pop(reader, None) or ChunkTable()
            for row in range(table.size, size):
                if alive is None or alive[row]:
                    table.put(row, reader.chunk(passages[row]), reader.links(passages[row]))
            table.size = max(table.size, size)
            self._tables[reader] = table
            if len(self._tables) > MOST_READERS:
                del self._tables[next(iter(self._tables))]
            return table


class PassageNeighbours:
    """Neighbours among chunks in rows; a `ChunkSource` with embeddings.

    Parameters
    ----------
    table
        The places of the chunks.
    row_of
        Id -> row, or None if there is no chunk with that id.
    visible
        Which rows are visible.
    vectors
        Their embeddings, shape (rows, dim); None: continuity is unknown.
    unit
        Whether each is known to be of unit length or zero.
    whole
        Whether the rows hold all chunks of their documents. If not, a document ends only where
        links say so, and the sizes of sections are not known.
    """

    def __init__(
        self,
        table: ChunkTable,
        row_of: Callable[[str], int | None],
        visible: Visible,
        vectors: Vectors | None,
        *,
        unit: bool = False,
        whole: bool = True,
    ) -> None:
        self._table = table
        self._row_of = row_of
        self._visible = visible
        self._vectors = vectors
        self._unit = unit
        self._whole = whole
        self._rows: dict[str, int] = {}
        self._orders: dict[tuple[_Section, bool], ChunkOrder | None] = {}
        self._sizes: dict[_Section, int] = {}

    @classmethod
    def of(
        cls,
        passages: Iterable[Passage],
        reader: ChunkReader,
        vectors: npt.ArrayLike | None = None,
    ) -> Self:
        """Return the neighbours among passages in memory, for any number of queries.

        Parameters
        ----------
        passages
            With unique ids; those without an id are identified by their place and text.
        reader
            Reads passages as chunks.
        vectors
            Their embeddings, shape (len(passages), dim), finite; copied.

        Raises
        ------
        ValueError
            If two passages of different text have the same id; a place is invalid; or the vectors
            have the wrong shape or are not finite.
        """
        passages = list(passages)
        matrix = None
        if vectors is not None:
            names = [repr(passage.id) for passage in passages]
            matrix = unit_rows(vectors, len(passages), "the passages", names=names)
        chunks = map(reader.chunk, passages)
        return cls._of_chunks(chunks, map(reader.links, passages), matrix)

    @classmethod
    def among(cls, chunks: Iterable[Chunk], links: Iterable[Links | None] | None = None) -> Self:
        """Return the neighbours among some chunks of documents, as a store gave them.

        Parameters
        ----------
        chunks
            With unique ids. Offsets place none of them: there may be others in between.
        links
            The neighbours that each names; None: none of them names any.
        """
        chunks = list(chunks)
        return cls._of_chunks(chunks, links or [None] * len(chunks), whole=False)

    @classmethod
    def _of_chunks(
        cls,
        chunks: Iterable[Chunk],
        links: Iterable[Links | None],
        vectors: Vectors | None = None,
        *,
        whole: bool = True,
    ) -> Self:
        table, rows = ChunkTable(), dict[str, int]()
        for row, (chunk, named) in enumerate(zip(chunks, links, strict=True)):
            table.put(row, chunk, named)
            if table.chunks[rows.setdefault(chunk.id, row)].text != chunk.text:
                raise ValueError(
                    f"two chunks of different text have the id {chunk.id!r}: give each its own id"
                )
        return cls(table, rows.get, Visible(table.size), vectors, unit=True, whole=whole)

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `ChunkSource`.

        A seed is identified by its id, or else by its place. If passages at one place of a
        document contradict each other, none of its passages has neighbours, and a warning is given.
        """
        if seeds and self._whole and not self._table.knows_places:
            warnings.warn(
                "no passage says which chunk of which document it is, so none has neighbours: "
                f"{NUMBER_THEM}",
                stacklevel=2,
            )
        return [self._around(seed, window) for seed in seeds]

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None] | None:
        """Return the cosine of each pair of chunks that `around` returned; None without vectors."""
        if self._vectors is None:
            return None
        if not pairs:
            return []
        first, second = (
            self._vectors.take([self._rows[pair[side].id] for pair in pairs], axis=0)
            for side in (0, 1)
        )
        return [*cosine_similarity(first, second, unit=self._unit).tolist()]

    def _around(self, seed: Chunk, window: int) -> Neighbourhood:
        row = self._row(seed)
        if row is None:
            return Neighbourhood(seed)
        before, before_end = self._walk(row, -1, window)
        after, after_end = self._walk(row, 1, window)
        chunk = self._chunk(row)
        size = self._section_size(chunk) if self._whole else None
        return Neighbourhood(chunk, tuple(before[::-1]), tuple(after), before_end, after_end, size)

    def _section_size(self, chunk: Chunk) -> int | None:
        key = chunk.document, chunk.heading
        if key not in self._sizes:
            self._sizes[key] = self._visible.count(self._table.section(chunk))
        return self._sizes[key] or None

    def _row(self, seed: Chunk) -> int | None:
        row = self._row_of(seed.id)
        if row is not None and self._is_there(row):
            return row
        there = [*filter(self._is_there, self._table.at(seed))]
        texts = [self._table.chunks[row].text for row in there]
        if len({*texts}) > 1:
            return there[texts.index(seed.text)] if seed.text in texts else None
        return there[0] if there else None

    def _walk(self, row: int, step: int, window: int) -> tuple[list[Chunk], End]:
        found: list[Chunk] = []
        walked = {row}
        for _ in range(window):
            following = self._next_to(row, step)
            if isinstance(following, str):
                return found, following
            if following in walked:
                return found, "missing"
            row = following
            walked.add(row)
            found.append(self._chunk(row))
        return found, "more"

    def _next_to(self, row: int, step: int) -> int | End:
        chunk, links = self._table.chunks[row], self._table.links(row)
        id = links.id(step)
        if id is not None:
            linked = self._row_of(id)
            return linked if linked is not None and self._is_there(linked) else "missing"
        if naming := self._naming(chunk, step):
            there = [*filter(self._is_there, naming)]
            return there[0] if len(there) == 1 else "missing"
        if self._naming(chunk, -step):
            return links.edge
        if links.any:
            return "missing"  # links of this direction may not have been written at all
        found = self._next_by_place(row, step)
        if found != "document" or (self._whole and chunk.number is not None):
            return found
        # Among linked chunks, the one that named this one may have been deleted.
        alone = self._whole and chunk.document not in self._table.linked_documents
        return links.edge if alone else "missing"

    def _next_by_place(self, row: int, step: int) -> int | End:
        chunk = self._table.chunks[row]
        if not self._whole and chunk.number is None:
            return "missing"
        key = (chunk.document, chunk.heading), chunk.number is not None
        if key not in self._orders:
            self._orders[key] = self._table.order(chunk, self._visible)
        order = self._orders[key]
        return "missing" if order is None else order.next_to(row, step, self._visible)

    def _naming(self, chunk: Chunk, step: int) -> list[int]:
        """Return the rows whose links name a chunk; of each passage the latest version alone."""
        return [
            row
            for row in self._table.naming(chunk.id, step)
            if row < self._visible.size and self._row_of(self._table.chunks[row].id) in (row, None)
        ]

    def _is_there(self, row: int) -> bool:
        # A row that was deleted before the table reached it is not in the table.
        return row in self._table.chunks and self._visible(row)

    def _chunk(self, row: int) -> Chunk:
        chunk = self._table.chunks[row]
        self._rows[chunk.id] = row
        return chunk
