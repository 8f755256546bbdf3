"""Neighbours among passages: of an index, or of any list of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeAlias

import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.expansion import Chunk, End, Neighbourhood
from shared_core.index.metadata import Visible
from shared_core.index.neighbours.lines import Numbers, Starts
from shared_core.index.neighbours.place_table import PlaceTable
from shared_core.index.neighbours.places import ChunkReader
from shared_core.types import Passage
from shared_core.vectors import cosine_similarity, unit_rows

_Text: TypeAlias = tuple[str, tuple[str, ...] | None, bool]
"""Document, headings, and whether chunks are placed by number."""


class PassageNeighbours:
    """Neighbours among passages that stand in rows; a `ChunkSource` that knows embeddings.

    Parameters
    ----------
    table
        Where they stand.
    row_of
        Id to row; None where there is no passage of that id.
    visible
        Which rows may be seen.
    vectors
        Their embeddings, shape (rows, dim); None: continuity is unknown.
    unit
        Whether each is known to be of unit length, or zero.
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
        self._lines: dict[_Text, Numbers | Starts | None] = {}

    @classmethod
    def of(
        cls,
        passages: Iterable[Passage],
        reader: ChunkReader,
        vectors: npt.ArrayLike | None = None,
    ) -> Self:
        """Return the neighbours among passages in memory; it serves for any number of queries.

        Parameters
        ----------
        passages
            Ids unique; one without an id is known by its place.
        reader
            Tells which chunk a passage is.
        vectors
            Their embeddings, shape (len(passages), dim), finite; copied.

        Raises
        ------
        ValueError
            If two passages of different text have the same id, or have none and stand in one
            place; a passage tells a place that is none; or the vectors do not fit or are not
            finite.
        """
        passages = list(passages)
        matrix = None
        if vectors is not None:
            names = [repr(passage.id) for passage in passages]
            matrix = unit_rows(vectors, len(passages), "the passages", names=names)
        table = PlaceTable(reader)
        table.grow(passages, range(len(passages)), len(passages))
        rows: dict[str, int] = {}
        for row, chunk in table.chunks.items():
            known = table.chunks[rows.setdefault(chunk.id, row)]
            if known.text != chunk.text:
                raise _same_id(chunk.id, named=bool(passages[row].id))
        return cls(table, rows.get, Visible(len(passages)), matrix, unit=True)

    @property
    def reader(self) -> ChunkReader:
        """What told which chunk a passage is."""
        return self._table.reader

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `shared_core.expansion.ChunkSource`.

        A seed is known by its id, or else by its place. Where passages of different text stand
        in one place of a document, none of its passages has neighbours, and that is warned of.
        """
        if seeds and not self._table.knows_places:
            warnings.warn(
                "no passage tells which chunk of which document it is, so none has neighbours: "
                "number the chunks of a document in their metadata, see ChunkKeys",
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
            self._visible.count(self._table.section(chunk)) or None,
        )

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
            beside = self._beside(row, step)
            if isinstance(beside, str):
                return found, beside
            if beside in walked:
                return found, "missing"
            row = beside
            walked.add(row)
            found.append(self._chunk(row))
        return found, "more"

    def _beside(self, row: int, step: int) -> int | End:
        chunk, links = self._table.chunks[row], self._table.links
        id = links.named(row, step)
        if id is not None:
            linked = self._row_of(id)
            return linked if linked is not None and self._is_there(linked) else "missing"
        if naming := self._naming(chunk, step):
            there = [*filter(self._is_there, naming)]
            return there[0] if len(there) == 1 else "missing"
        if self._naming(chunk, -step):
            return links.edge(row)
        if links.named(row, -step) is not None:
            return "missing"  # perhaps nobody writes links of this direction
        beside = self._by_place(chunk, step)
        by_start = chunk.number is None
        return links.edge(row) if by_start and beside == "document" else beside

    def _by_place(self, chunk: Chunk, step: int) -> int | End:
        text = chunk.document, chunk.heading, chunk.number is not None
        if text not in self._lines:
            self._lines[text] = self._table.line(chunk, self._visible)
        line = self._lines[text]
        if isinstance(line, Numbers) and chunk.number is not None:
            return line.beside(chunk.number, step, self._visible)
        return line.beside(chunk, step, self._visible) if isinstance(line, Starts) else "missing"

    def _naming(self, chunk: Chunk, step: int) -> list[int]:
        """Return the rows that name a chunk from the other side, without other versions."""
        return [
            row
            for row in self._table.links.naming(chunk.id, step)
            if row < self._visible.size and self._row_of(self._table.chunks[row].id) in (row, None)
        ]

    def _is_there(self, row: int) -> bool:
        # A row that was deleted before the table got to it is not in the table.
        return row in self._table.chunks and self._visible(row)

    def _chunk(self, row: int) -> Chunk:
        chunk = self._table.chunks[row]
        self._rows[chunk.id] = row
        return chunk


def _same_id(id: str, *, named: bool) -> ValueError:
    if named:
        return ValueError(f"two chunks of different text are {id!r}: give each an id of its own")
    return ValueError(
        f"two chunks of different text are {id!r}, the name of those without an id: several texts "
        "go by the name of one document, or a number is there twice. Name the metadata key that "
        "tells the texts apart with ChunkKeys(document=...), or number the chunks of a document "
        "in their order"
    )
