"""Neighbours among the passages of an index, or of a list."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeAlias

import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.neighbour_spans.chunks import Chunk, End, Neighbourhood
from shared_core.neighbour_spans.lines import Line, Visible
from shared_core.neighbour_spans.place_table import PlaceTable
from shared_core.neighbour_spans.places import ChunkReader
from shared_core.neighbour_spans.seams import begins
from shared_core.types import Passage
from shared_core.vectors import cosine_similarity, unit_rows

_LineKey: TypeAlias = tuple[str, tuple[str, ...] | None, bool]
"""Document, headings, and whether chunks are placed by number."""


class PassageNeighbours:
    """Neighbours among passages in rows; a `ChunkSource` with embeddings.

    Parameters
    ----------
    table
        The places of the passages.
    row_of
        Id -> row, or None if there is no passage with that id.
    visible
        Which rows are visible.
    vectors
        Their embeddings, shape (rows, dim); None: continuity is unknown.
    unit
        Whether each is known to be of unit length or zero.
    """

    def __init__(
        self,
        table: PlaceTable,
        row_of: Callable[[str], int | None],
        visible: Visible,
        vectors: Vectors | None,
        *,
        unit: bool = False,
    ) -> None:
        self._table = table
        self._row_of = row_of
        self._visible = visible
        self._vectors = vectors
        self._unit = unit
        self._rows: dict[str, int] = {}
        self._lines: dict[_LineKey, Line | None] = {}
        self._sizes: dict[tuple[str, tuple[str, ...] | None], int] = {}

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
            With unique ids; those without an id are identified by their place.
        reader
            Reads passages as chunks.
        vectors
            Their embeddings, shape (len(passages), dim), finite; copied.

        Raises
        ------
        ValueError
            If two passages of different text have the same id or, without ids, the same place,
            unless one begins the other; a place is invalid; or the vectors have the wrong shape or
            are not finite.
        """
        passages = list(passages)
        matrix = None
        if vectors is not None:
            names = [repr(passage.id) for passage in passages]
            matrix = unit_rows(vectors, len(passages), "the passages", names=names)
        table = PlaceTable(reader)
        table.grow(passages, range(len(passages)), len(passages))
        rows: dict[str, int] = {}
        longest: dict[tuple[object, ...], Chunk] = {}
        for row, chunk in table.chunks.items():
            named = bool(passages[row].id)
            same = table.chunks[rows.setdefault(chunk.id, row)].text == chunk.text
            if not named and chunk.number is None and chunk.start is not None:
                place = chunk.document, chunk.heading, chunk.start
                known = longest.get(place, chunk)
                same = same and begins(known, chunk)
                longest[place] = max(known, chunk, key=lambda each: len(each.text))
            if not same:
                raise _same_id_error(chunk.id, named=named)
        return cls(table, rows.get, Visible(len(passages)), matrix, unit=True)

    @property
    def reader(self) -> ChunkReader:
        """The reader that has read the passages."""
        return self._table.reader

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `shared_core.neighbour_spans.ChunkSource`.

        A seed is identified by its id, or else by its place. If passages at one place of a
        document contradict each other, none of its passages has neighbours, and a warning is given.
        """
        if seeds and not self._table.knows_places:
            warnings.warn(
                "no passage says which chunk of which document it is, so none has neighbours: "
                "number the chunks of each document in their metadata, see ChunkKeys",
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
        chunk = self._chunk(row)
        before, before_end = self._walk(row, -1, window)
        after, after_end = self._walk(row, 1, window)
        return Neighbourhood(
            chunk,
            tuple(before[::-1]),
            tuple(after),
            before_end,
            after_end,
            self._section_size(chunk) or None,
        )

    def _section_size(self, chunk: Chunk) -> int:
        key = chunk.document, chunk.heading
        if key not in self._sizes:
            self._sizes[key] = self._visible.count(self._table.section(chunk))
        return self._sizes[key]

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
        chunk, links = self._table.chunks[row], self._table.links.of(row)
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
        if found != "document" or chunk.number is not None:
            return found
        # Among linked chunks, the one that named this one may have been deleted.
        return "missing" if chunk.document in self._table.linked_documents else links.edge

    def _next_by_place(self, row: int, step: int) -> int | End:
        chunk = self._table.chunks[row]
        key = chunk.document, chunk.heading, chunk.number is not None
        if key not in self._lines:
            self._lines[key] = self._table.line(chunk, self._visible)
        line = self._lines[key]
        return "missing" if line is None else line.next_to(row, step, self._visible)

    def _naming(self, chunk: Chunk, step: int) -> list[int]:
        """Return the rows whose links name a chunk; of each passage the latest version alone."""
        return [
            row
            for row in self._table.links.naming(chunk.id, step)
            if row < self._visible.size and self._row_of(self._table.chunks[row].id) in (row, None)
        ]

    def _is_there(self, row: int) -> bool:
        # A row that was deleted before the table reached it is not in the table.
        return row in self._table.chunks and self._visible(row)

    def _chunk(self, row: int) -> Chunk:
        chunk = self._table.chunks[row]
        self._rows[chunk.id] = row
        return chunk


def _same_id_error(id: str, *, named: bool) -> ValueError:
    if named:
        return ValueError(f"two chunks of different text have the id {id!r}: give each its own id")
    return ValueError(
        f"two chunks of different text, without an id, have the place {id!r}: several texts share "
        "a document id, or a number occurs twice. Name the metadata key that distinguishes the "
        "texts with ChunkKeys(document=...), or number the chunks of each document in order"
    )
