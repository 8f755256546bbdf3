"""Neighbours among passages: of an index, or of any list of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.expansion import Chunk, End, Neighbourhood
from shared_core.index.metadata import Visible
from shared_core.index.neighbours.place_table import PlaceTable
from shared_core.index.neighbours.places import ChunkReader
from shared_core.types import Passage
from shared_core.vectors import cosine_similarity, unit_rows


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
                raise ValueError(
                    f"two chunks of different text are {chunk.id!r}: give each an id of its own, "
                    "and if they are of different documents tell these apart, see ChunkKeys"
                )
        return cls(table, rows.get, Visible(len(passages)), matrix, unit=True)

    @property
    def reader(self) -> ChunkReader:
        """What told which chunk a passage is."""
        return self._table.reader

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `shared_core.expansion.ChunkSource`.

        A seed is known by its id, or else by its place.

        Raises
        ------
        ValueError
            If two passages of different text stand in one place.
        """
        if seeds and not self._table.knows_places:
            warnings.warn(
                "no passage tells which chunk of which document it is, so none has neighbours: "
                "number the chunks of a document in their metadata, see ChunkKeys",
                stacklevel=2,
            )
        return [self._around(seed, window) for seed in seeds]

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None]:
        """Return the cosine of each pair of chunks that `around` returned; None without vectors."""
        if self._vectors is None or not pairs:
            return [None] * len(pairs)
        first, second = (
            self._vectors.take([self._rows[pair[side].id] for pair in pairs], axis=0)
            for side in (0, 1)
        )
        return [*cosine_similarity(first, second, unit=self._unit).tolist()]

    def _around(self, seed: Chunk, window: int) -> Neighbourhood:
        row = self._row_of(seed.id)
        if row is None or not self._is_there(row):
            row = next(filter(self._is_there, self._table.at(seed)), None)
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
        links = self._table.links.get(row)
        if links is None:
            rows = self._table.beside(self._table.chunks[row], step, self._visible)
            return rows if isinstance(rows, str) else self._one(rows)
        id = links[step > 0]
        if id is None:
            return "document"
        linked = self._row_of(id)
        return linked if linked is not None and self._is_there(linked) else "missing"

    def _one(self, rows: Sequence[int]) -> int:
        first, *others = [self._table.chunks[row] for row in rows]
        for other in others:
            if other.text != first.text:
                raise _in_one_place(first, other)
        return rows[0]

    def _is_there(self, row: int) -> bool:
        # A row that was deleted before the table got to it is not in the table.
        return row in self._table.chunks and self._visible(row)

    def _chunk(self, row: int) -> Chunk:
        chunk = self._table.chunks[row]
        self._rows[chunk.id] = row
        return chunk


def _in_one_place(one: Chunk, other: Chunk) -> ValueError:
    place = f"start at {one.start}" if one.number is None else f"are number {one.number}"
    return ValueError(
        f"{one.id!r} and {other.id!r} both {place} of document {one.document!r}: delete the one, "
        "number the chunks in their order, or tell their documents apart with ChunkKeys"
    )
