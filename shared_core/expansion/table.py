"""Chunks in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy.typing as npt

from shared_core.expansion.chunks import Chunk, End, Neighbourhood
from shared_core.expansion.vectors import VectorTable

Heading = tuple[str, ...] | None


@dataclass(slots=True)
class _Document:
    """The chunks of one document by number, and how many stand under each heading."""

    chunks: dict[int, Chunk] = field(default_factory=dict)
    sections: Counter[Heading] = field(default_factory=Counter)
    first: int = 0
    last: int = -1

    def put(self, chunk: Chunk, number: int) -> None:
        self.first = min(self.first, number) if self.chunks else number
        self.last = max(self.last, number) if self.chunks else number
        self.chunks[number] = chunk
        self.sections[chunk.heading] += 1

    def take(self, number: int) -> None:
        chunk = self.chunks.pop(number)
        self.sections[chunk.heading] -= 1
        if self.chunks and number in (self.first, self.last):
            self.first, self.last = min(self.chunks), max(self.chunks)

    def walk(self, number: int, step: int, window: int) -> tuple[list[Chunk], End]:
        """Return up to `window` chunks from a number on, nearest first, and what lies beyond."""
        found: list[Chunk] = []
        for at in range(number + step, number + step * (window + 1), step):
            chunk = self.chunks.get(at)
            if chunk is None:
                return found, "missing" if self.first <= at <= self.last else "document"
            found.append(chunk)
        return found, "more"


class ChunkTable:
    """Chunks in memory, neighbours by number; with vectors an `EmbeddedChunkSource`.

    The chunk next to number 7 of a document is number 8 of it: where there is none but a higher
    one, a chunk is missing there, and nothing reaches across.

    Parameters
    ----------
    chunks
        Chunks with a number. No two with the same id, nor with the same document and number.
    vectors
        Their embeddings, shape (n, dim), finite; copied. None: continuity is unknown.
    documents
        Document id -> its whole text, where it is at hand: what splitters stripped between two
        chunks is taken from there.

    Raises
    ------
    ValueError
        As `add`.
    """

    def __init__(
        self,
        chunks: Iterable[Chunk] = (),
        vectors: npt.ArrayLike | None = None,
        *,
        documents: Mapping[str, str] | None = None,
    ) -> None:
        self._chunks: dict[str, Chunk] = {}
        self._documents: dict[str, _Document] = {}
        self._vectors = VectorTable()
        self._texts = {} if documents is None else documents
        self.add(chunks, vectors)

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._chunks.values())

    def __contains__(self, id: object) -> bool:
        return id in self._chunks

    def add(self, chunks: Iterable[Chunk], vectors: npt.ArrayLike | None = None) -> None:
        """Add chunks, or replace those whose id is there already; all of them or none.

        Raises
        ------
        ValueError
            If a chunk has no number, an id or a place in a document is taken twice, or the
            vectors do not fit.
        """
        chunks = list(chunks)
        self._check(chunks)
        matrix = None if vectors is None else self._vectors.checked(vectors, len(chunks))
        self.delete(chunk.id for chunk in chunks)
        for chunk in chunks:
            self._chunks[chunk.id] = chunk
            document = self._documents.setdefault(chunk.document, _Document())
            document.put(chunk, _number(chunk))
        if matrix is not None:
            self._vectors.add([chunk.id for chunk in chunks], matrix)

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete chunks and return the ids that were there; unknown ids are ignored."""
        found = [id for id in dict.fromkeys(ids) if id in self._chunks]
        for id in found:
            chunk = self._chunks.pop(id)
            document = self._documents[chunk.document]
            document.take(_number(chunk))
            if not document.chunks:
                del self._documents[chunk.document]
        self._vectors.discard(found)
        return found

    def get(self, ids: Iterable[str]) -> list[Chunk]:
        """Return the chunks of `ids`, in that order, without those that are not there."""
        return [self._chunks[id] for id in ids if id in self._chunks]

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `ChunkSource`.

        A seed is known by its id, or else by its document and number.
        """
        return [self._around(seed, window) for seed in seeds]

    def _around(self, seed: Chunk, window: int) -> Neighbourhood:
        known = self._chunks.get(seed.id)
        if known is None and seed.number is not None and seed.document in self._documents:
            known = self._documents[seed.document].chunks.get(seed.number)
        if known is None:
            return Neighbourhood(seed)
        document, number = self._documents[known.document], _number(known)
        before, before_end = document.walk(number, -1, window)
        after, after_end = document.walk(number, 1, window)
        size = document.sections[known.heading]
        return Neighbourhood(
            known, tuple(before[::-1]), tuple(after), before_end, after_end, section_size=size
        )

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None]:
        """Return the cosine of each pair; None where a chunk has no vector."""
        return self._vectors.cosines([(first.id, second.id) for first, second in pairs])

    def text_between(self, document: str, start: int, end: int) -> str | None:
        """Return the text of a document between two offsets; None if the table has it not."""
        text = self._texts.get(document)
        return None if text is None else text[start:end]

    def _check(self, chunks: Sequence[Chunk]) -> None:
        ids = {chunk.id for chunk in chunks}
        if len(ids) < len(chunks):
            (twice, _), *_ = Counter(chunk.id for chunk in chunks).most_common(1)
            raise ValueError(f"chunk id {twice!r} occurs twice")
        places: dict[tuple[str, int], str] = {}
        for chunk in chunks:
            number = _number(chunk)
            document = self._documents.get(chunk.document)
            there = None if document is None else document.chunks.get(number)
            taken = None if there is None or there.id in ids else there.id
            taken = places.setdefault((chunk.document, number), taken or chunk.id)
            if taken != chunk.id:
                raise ValueError(
                    f"chunks {taken!r} and {chunk.id!r} are both number {number} of document "
                    f"{chunk.document!r}: delete the one, or number them in their order"
                )


def _number(chunk: Chunk) -> int:
    if chunk.number is None:
        raise ValueError(
            f"chunk {chunk.id!r} has no number: give each chunk its place in its document"
        )
    return chunk.number
