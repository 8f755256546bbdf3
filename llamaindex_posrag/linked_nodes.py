"""Neighbours by the PREVIOUS and NEXT relationships of nodes, through a document store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.node_chunks import NodeChunks, links_of
from llamaindex_posrag.nodes import to_passage
from shared_core.expansion import Chunk, Neighbourhood
from shared_core.index.neighbours.source import PassageNeighbours


@dataclass(frozen=True)
class LinkedNodes:
    """A `shared_core.expansion.ChunkSource` over a document store.

    The store is asked once for the seeds and once for each step of the window, for all seeds
    together. Whatever it does not have is a missing neighbour.

    Attributes
    ----------
    docstore
        Holds the nodes.
    reader
        Reads nodes as chunks.
    """

    docstore: BaseDocumentStore
    reader: NodeChunks

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; see `shared_core.expansion.ChunkSource`.

        Warns if it has nothing at all of what the seeds are and link to.
        """
        given = {seed.id: seed.source.source for seed in seeds}
        fetched = self._fetched(given)
        sides = [[{**given, **fetched}[id] for id in given] for _ in (0, 1)]
        for _ in range(window):
            links = [[links_of(node)[at] for node in side] for at, side in enumerate(sides)]
            wanted = {id: None for side in links for id in side if id is not None}
            fetched |= self._fetched(id for id in wanted if id not in fetched)
            sides = [[fetched[id] for id in side if id in fetched] for side in links]
        if not fetched and any(any(links_of(node)) for node in given.values()):
            warnings.warn(
                "the docstore has neither the retrieved nodes nor those that they link to. A "
                "vector store that keeps the text itself leaves it empty: use "
                "NeighbourSpanPostprocessor.from_nodes(nodes)",
                stacklevel=2,
            )
        passages = map(to_passage, {**given, **fetched}.values())
        found = PassageNeighbours.of(passages, self.reader).around(seeds, window)
        # What was fetched says nothing about how long a section is.
        return [replace(around, section_size=None) for around in found]

    def _fetched(self, ids: Iterable[str]) -> dict[str, BaseNode]:
        wanted = [*ids]
        found = self.docstore.get_nodes(wanted, raise_error=False) if wanted else ()
        return {node.node_id: node for node in found}
