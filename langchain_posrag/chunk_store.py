"""Chunks in a LangChain store, by a key made of document and number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from langchain_core.documents import Document
from langchain_core.stores import BaseStore

from langchain_posrag.documents import passage_of
from shared_core.neighbour_spans import Chunk, ChunkKeys, Neighbourhood, PassageNeighbours


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
        numbered = {
            self.key(seed.document, seed.number): seed for seed in seeds if seed.number is not None
        }
        places = {
            self.key(seed.document, number): (seed.document, number)
            for seed in numbered.values()
            if seed.number is not None
            for number in range(seed.number - window, seed.number + window + 1)
        }
        if seeds and not numbered:
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
        if numbered and not chunks:
            warnings.warn(
                f"the store has nothing under {next(iter(numbered))!r}, nor under any other key "
                "around the retrieved documents: give key=, the function that makes its keys",
                stacklevel=2,
            )
        there = {key: replace(seed, id=key) for key, seed in numbered.items()} | chunks
        return PassageNeighbours.among(there.values()).around(seeds, window)

    def _chunk(self, key: str, document: str, number: int, stored: Document) -> Chunk:
        if not isinstance(stored, Document):
            raise ValueError(
                f"the store holds a {type(stored).__name__} under {key!r}, not a document: wrap "
                "it with LangChain's create_kv_docstore"
            )
        chunk = self.chunk_keys.chunk(passage_of(stored, key))
        return replace(chunk, document=document, number=number)
