"""Neighbours in a store of somebody else's, read in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood
from shared_core.neighbour_spans.neighbours import PassageNeighbours
from shared_core.neighbour_spans.places import ChunkKeys, ChunkReader, Links
from shared_core.types import Passage

_NO_LINKS = Links()


@dataclass(frozen=True, slots=True)
class NumberedStore:
    """A `ChunkSource` over a store whose keys are made of document and number.

    Attributes
    ----------
    read
        Keys -> their passages in the same order; None for one that is not there.
    key
        Id of a document and number of a chunk to the chunk's key.
    chunk_keys
        Metadata keys of the passages in the store; document and number come from the key.
    """

    read: Callable[[list[str]], Sequence[Passage | None]]
    key: Callable[[str, int], str]
    chunk_keys: ChunkKeys

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed, all read at once.

        Warns if no seed has a number, or the store has none of the chunks.
        """
        known: dict[str, Chunk] = {}
        places: dict[str, tuple[str, int]] = {}
        for seed in seeds:
            if seed.number is not None:
                known[self.key(seed.document, seed.number)] = seed
                for number in range(seed.number - window, seed.number + window + 1):
                    places[self.key(seed.document, number)] = seed.document, number
        if seeds and not known:
            warnings.warn(
                f"no document has a number under {self.chunk_keys.number!r} in its metadata, by "
                "which a store finds its neighbours: number the chunks of a document, or give the "
                "chunks themselves, with from_documents",
                stacklevel=2,
            )
        found = dict(zip(places, self.read([*places]) if places else (), strict=True))
        chunks = {
            key: replace(self.chunk_keys.chunk(passage), id=key, document=document, number=number)
            for key, (document, number) in places.items()
            if (passage := found[key]) is not None
        }
        if known and not chunks:
            warnings.warn(
                f"the store has nothing under {next(iter(known))!r}, nor under any other key "
                "around the retrieved documents: give key=, the function that makes its keys",
                stacklevel=2,
            )
        there = {key: replace(seed, id=key) for key, seed in known.items()} | chunks
        return PassageNeighbours.among(there.values()).around(seeds, window)


@dataclass(frozen=True, slots=True)
class LinkedStore:
    """A `ChunkSource` over a store of passages that name their neighbours.

    It is read once for the seeds and once for each step of the window, for all seeds together. A
    passage that it does not have is a missing neighbour. So is one that a passage does not name,
    unless the document is known to end there: many pipelines name the previous one alone, and a
    store cannot find the passages that name another. Numbers and offsets place no passage: there
    may be others between two that were read.

    Attributes
    ----------
    read
        Ids -> the passages of those that are there, in any order.
    reader
        Reads passages as chunks; the seeds' chunks are its own.
    """

    read: Callable[[list[str]], Iterable[Passage]]
    reader: ChunkReader

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `ChunkSource`.

        Warns if the store has neither the seeds nor any passage that they name.
        """
        given: dict[str, Passage] = {seed.id: seed.source for seed in seeds}
        read = self._read(given)
        sides = {step: [*(given | read).values()] for step in (-1, 1)}
        for _ in range(window):
            ids = {
                step: [id for passage in side if (id := self._links(passage).id(step)) is not None]
                for step, side in sides.items()
            }
            wanted = dict.fromkeys(id for side in ids.values() for id in side)
            read |= self._read(id for id in wanted if id not in read)
            sides = {step: [read[id] for id in side if id in read] for step, side in ids.items()}
        if not read and any(self._links(passage).any for passage in given.values()):
            warnings.warn(
                "the store has neither the retrieved nodes nor those that they link to. A vector "
                "store that keeps the text itself leaves the docstore empty: give the nodes "
                "themselves, with from_nodes",
                stacklevel=2,
            )
        passages = [*(given | read).values()]
        chunks = map(self.reader.chunk, passages)
        return PassageNeighbours.among(chunks, map(self._links, passages)).around(seeds, window)

    def _read(self, ids: Iterable[str]) -> dict[str, Passage]:
        wanted = [*ids]
        return {passage.id: passage for passage in (self.read(wanted) if wanted else ())}

    def _links(self, passage: Passage) -> Links:
        return self.reader.links(passage) or _NO_LINKS
