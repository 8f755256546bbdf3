"""Chunks in a LangChain store, by a key made of document and number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from langchain_posrag.documents import passage_of
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import Chunk, Neighbourhood


@dataclass(frozen=True, slots=True)
class StoredChunks:
    """A `shared_core.neighbour_spans.ChunkSource` over a key-value store.

    Attributes
    ----------
    store
        Holds the documents.
    key
        Id of a document and number of a chunk to the chunk's key.
    chunk_keys
        Metadata keys of the documents in the store; document and number come from the key.
    """

    store: BaseStore[str, Document]
    key: Callable[[str, int], str]
    chunk_keys: ChunkKeys

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed, all read at once.

        Warns if no seed has a number, or the store has none of the chunks.

        Raises
        ------
        ValueError
            If the store holds anything but documents.
        """
        known = [(seed.document, seed.number) for seed in seeds if seed.number is not None]
        places = {
            self.key(document, number): (document, number)
            for document, centre in known
            for number in range(centre - window, centre + window + 1)
        }
        if seeds and not known:
            warnings.warn(
                f"no document has a number under {self.chunk_keys.number!r} in its metadata, by "
                "which a store finds its neighbours: number the chunks of a document, or use "
                "NeighbourSpanTransformer.from_documents",
                stacklevel=2,
            )
        stored = dict(zip(places, self.store.mget([*places]) if places else (), strict=True))
        chunks = {
            key: self._chunk(key, *places[key], document)
            for key, document in stored.items()
            if document is not None
        }
        if known and not chunks:
            warnings.warn(
                f"the store has nothing under {self.key(*known[0])!r}, nor under any other key "
                "around the retrieved documents: give key=, the function that makes its keys",
                stacklevel=2,
            )
        return [self._around(seed, window, chunks) for seed in seeds]

    def _around(self, seed: Chunk, window: int, chunks: Mapping[str, Chunk]) -> Neighbourhood:
        number = seed.number
        if number is None:
            return Neighbourhood(seed)
        before, after = (
            self._walk(
                seed.document, range(number + step, number + step * (window + 1), step), chunks
            )
            for step in (-1, 1)
        )
        key = self.key(seed.document, number)
        return Neighbourhood(
            chunks.get(key) or replace(seed, id=key),
            tuple(before[::-1]),
            tuple(after),
            "more" if len(before) == window else "missing",
            "more" if len(after) == window else "missing",
        )

    def _walk(self, document: str, numbers: range, chunks: Mapping[str, Chunk]) -> list[Chunk]:
        found: list[Chunk] = []
        for number in numbers:
            chunk = chunks.get(self.key(document, number))
            if chunk is None:
                break
            found.append(chunk)
        return found

    def _chunk(self, key: str, document: str, number: int, stored: Document) -> Chunk:
        if not isinstance(stored, Document):
            raise ValueError(
                f"the store holds a {type(stored).__name__} under {key!r}, not a document: wrap "
                "it with LangChain's create_kv_docstore"
            )
        chunk = self.chunk_keys.chunk(passage_of(stored, key))
        return replace(chunk, document=document, number=number)
