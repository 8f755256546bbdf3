"""Neighbours among passages that are there, and among the documents of what was found."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood
from shared_core.neighbour_spans.order import ChunkOrder, OffsetOrder
from shared_core.neighbour_spans.places import NUMBER_THEM, ChunkReader, Links
from shared_core.types import Passage
from shared_core.vectors import cosine_similarity, unit_rows

MOST_DOCUMENTS = 4096
"""Most documents whose neighbours are kept from query to query."""

Documents: TypeAlias = Callable[[str, list[Any]], tuple[Sequence[Passage], Vectors | None]]
"""Key and values of the metadata -> the passages that have one of them, and their vectors."""

_NO_LINKS = Links()


class PassageNeighbours:
    """Neighbours among all passages of some documents; a `ChunkSource` with embeddings.

    A seed is identified by its id, or else by its place. If passages at one place of a text
    contradict each other, none of the text has neighbours, and a warning is given.

    Parameters
    ----------
    passages
        With unique ids; those without an id are identified by their place and text.
    reader
        Reads passages as chunks.
    vectors
        Their embeddings, shape (len(passages), dim), finite; None: continuity is unknown.

    Raises
    ------
    ValueError
        If two passages of different text have the same id; or the vectors have the wrong shape or
        are not finite.
    """

    def __init__(
        self,
        passages: Iterable[Passage],
        reader: ChunkReader,
        vectors: npt.ArrayLike | None = None,
    ) -> None:
        passages = list(passages)
        self._chunks: list[Chunk] = []
        self._links: list[Links] = []
        self._rows: dict[str, int] = {}
        self._naming: dict[tuple[str, int], list[int]] = {}
        self._orders: dict[tuple[Any, ...], ChunkOrder] = {}
        self._warned = False
        kept = [at for at, passage in enumerate(passages) if self._put(passage, reader)]
        self._vectors: Vectors | None = None
        if vectors is not None:
            names = [repr(passage.id) for passage in passages]
            unit = unit_rows(vectors, len(passages), "the passages", names=names)
            self._vectors = unit if len(kept) == len(unit) else unit[kept]
        self._make_orders()

    def _put(self, passage: Passage, reader: ChunkReader) -> bool:
        """Add a passage; return whether it is a new one."""
        chunk, links, row = reader.chunk(passage), reader.links(passage), len(self._chunks)
        if (known := self._rows.setdefault(chunk.id, row)) != row:
            if self._chunks[known].text != chunk.text:
                raise ValueError(
                    f"two chunks of different text have the id {chunk.id!r}: give each its own id"
                )
            return False
        self._chunks.append(chunk)
        self._links.append(links or _NO_LINKS)
        # Some splitters write one direction only, so links are followed in both.
        for step in (-1, 1):
            if links and (id := links.id(step)) is not None:
                self._naming.setdefault((id, -step), []).append(row)
        return True

    def _make_orders(self) -> None:
        rows: dict[tuple[Any, ...], list[int]] = {}
        for row, chunk in enumerate(self._chunks):
            key = _text_of(chunk)
            by_start = chunk.text and not self._links[row].any
            if chunk.number is not None or (by_start and (chunk.start is not None or key in rows)):
                rows.setdefault(key, []).append(row)
        for key, of_text in rows.items():
            numbered = self._chunks[of_text[0]].number is not None
            self._orders[key] = (ChunkOrder if numbered else OffsetOrder)(self._chunks, of_text)

    @property
    def knows_places(self) -> bool:
        """Whether the place of any passage is known."""
        return bool(self._orders or self._naming)

    @property
    def embedded(self) -> bool:
        """Whether there are embeddings."""
        return self._vectors is not None

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `ChunkSource`."""
        if seeds and not self.knows_places:
            _warn_of_places()
        return [self.around_one(seed, window) for seed in seeds]

    def around_one(self, seed: Chunk, window: int) -> Neighbourhood:
        """Return the neighbours of one seed."""
        row = self._row(seed)
        if row is None:
            return Neighbourhood(seed)
        before, after = self._walk(row, -1, window), self._walk(row, 1, window)
        return Neighbourhood(self._chunks[row], tuple(before[::-1]), tuple(after))

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
        return [*cosine_similarity(first, second, unit=True).tolist()]

    def _row(self, seed: Chunk) -> int | None:
        row = self._rows.get(seed.id)
        order = self._orders.get(_text_of(seed))
        if row is not None or order is None:
            return row
        there = order.at(seed)
        texts = [self._chunks[row].text for row in there]
        if len({*texts}) > 1:
            return there[texts.index(seed.text)] if seed.text in texts else None
        return there[0] if there else None

    def _walk(self, row: int, step: int, window: int) -> list[Chunk]:
        walked = [row]
        while len(walked) <= window:
            following = self._next_to(walked[-1], step)
            if following is None or following in walked:
                break
            walked.append(following)
        return [self._chunks[row] for row in walked[1:]]

    def _next_to(self, row: int, step: int) -> int | None:
        chunk, links = self._chunks[row], self._links[row]
        if (id := links.id(step)) is not None:
            return self._rows.get(id)
        if naming := self._naming.get((chunk.id, step)):
            return naming[0] if len(naming) == 1 else None
        if links.any or (chunk.id, -step) in self._naming:
            return None
        order = self._orders.get(_text_of(chunk))
        if order is None or self._disputed(order):
            return None
        return order.next_to(row, step)

    def _disputed(self, order: ChunkOrder) -> bool:
        """Return whether chunks of one place contradict each other, which gives one warning.

        Several texts share the id of the document then. No chunk has neighbours, not even one whose
        place is unique: the chunk next to it may belong to another text.
        """
        if order.dispute and not self._warned:
            self._warned = True
            one, other = order.dispute
            place = f"start at {one.start}" if one.number is None else f"are number {one.number}"
            warnings.warn(
                f"{one.id!r} and {other.id!r} both {place} of document {one.document!r}, so "
                "several texts share this document id and their chunks get no neighbours (other "
                "documents may be affected, too): name the metadata key that distinguishes the "
                "texts with ChunkKeys(document=...), or number the chunks of each document in "
                "order",
                stacklevel=2,
            )
        return order.dispute is not None


def _text_of(chunk: Chunk) -> tuple[Any, ...]:
    """Return what names the text a chunk is placed in: offsets may count within a section."""
    if chunk.number is not None:
        return chunk.document, True
    return chunk.document, False, chunk.heading


class DocumentNeighbours:
    """The documents of what was found, read when they are asked for; a `ChunkSource`.

    Parameters
    ----------
    documents
        Reads documents by what names them in the metadata of their passages.
    reader
        Reads passages as chunks. A chunk whose document it does not name has the other chunks of
        this kind around it, if they were found too.
    known
        Documents that were read before, to which others are added; None: none.
    passing
        The filter that their passages pass, to tell them from documents read by another.
    """

    def __init__(
        self,
        documents: Documents,
        reader: ChunkReader,
        known: MutableMapping[Any, PassageNeighbours] | None = None,
        passing: str = "",
    ) -> None:
        self._documents, self._reader = documents, reader
        self._kind = reader, passing
        self._known: MutableMapping[Any, PassageNeighbours] = {} if known is None else known
        self._holding: dict[str, PassageNeighbours] = {}
        self._embedded = False

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `ChunkSource`. A seed's source is its passage."""
        named = [self._reader.document_of(seed.source) for seed in seeds]
        sources = self._sources(named, [seed.source for seed in seeds])
        if seeds and not any(source.knows_places for source in sources):
            _warn_of_places()
        self._embedded = any(source.embedded for source in sources)
        found = []
        for seed, source in zip(seeds, sources, strict=True):
            found.append(source.around_one(seed, window))
            self._holding.update((chunk.id, source) for chunk in found[-1].run)
        return found

    def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None] | None:
        """Return the cosine of each pair of chunks that `around` returned; None without vectors."""
        if not self._embedded:
            return None
        found: list[float | None] = []
        for source, some in groupby(pairs, lambda pair: self._holding[pair[0].id]):
            of_source = [*some]
            found += source.continuity(of_source) or [None] * len(of_source)
        return found

    def _sources(
        self, named: Sequence[tuple[str, str] | None], passages: Sequence[Passage]
    ) -> list[PassageNeighbours]:
        """Return, for each passage, the document that it names as key and value."""
        nameless = [each for each, name in zip(passages, named, strict=True) if name is None]
        sources: dict[Any, PassageNeighbours] = {None: PassageNeighbours(nameless, self._reader)}
        unknown: dict[str, dict[str, Any]] = defaultdict(dict)
        for document, passage in zip(named, passages, strict=True):
            if document is None:
                continue
            if (known := self._known.get((self._kind, document))) is not None:
                sources[document] = known
            else:
                key, name = document
                unknown[key][name] = passage.metadata[key]
        for key, values in unknown.items():
            sources |= self._read(key, values)
        return [sources[document] for document in named]

    def _read(self, key: str, values: dict[str, Any]) -> dict[Any, PassageNeighbours]:
        """Read documents by their names, and keep them."""
        passages, vectors = self._documents(key, [*values.values()])
        rows: dict[str, list[int]] = defaultdict(list)
        for row, passage in enumerate(passages):
            rows[str(passage.metadata[key])].append(row)
        read: dict[Any, PassageNeighbours] = {}
        for name in values:
            held = [passages[row] for row in rows[name]]
            of_them = None if vectors is None else vectors[rows[name]]
            read[key, name] = PassageNeighbours(held, self._reader, of_them)
        if len(self._known) > MOST_DOCUMENTS:
            self._known.clear()
        self._known.update({(self._kind, each): source for each, source in read.items()})
        return read


def _warn_of_places() -> None:
    warnings.warn(
        "no passage says which chunk of which document it is, so none has neighbours: "
        f"{NUMBER_THEM}",
        stacklevel=3,
    )
