"""Nodes as chunks of documents, and their neighbours in a document store."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.nodes import to_passage
from shared_core import Passage
from shared_core.neighbour_spans import (
    Chunk,
    ChunkKeys,
    End,
    Links,
    Neighbourhood,
    PassageNeighbours,
)


@dataclass(frozen=True, slots=True)
class NodeChunks:
    """Reads the place of a node, as a `ChunkReader` of `shared_core.neighbour_spans`.

    It is given by the PREVIOUS and NEXT relationships; without both, by the number in the
    metadata; without that, by the offset at which the node starts. Offsets count in the source
    document, or in the PARENT node if there is one (`HierarchicalNodeParser`): the parent is then
    the document, and it is not known what lies beyond its edges. The text of a chunk is that of
    the node without metadata, which offsets refer to.

    Attributes
    ----------
    chunk_keys
        Metadata keys of document, number and headings.
    """

    chunk_keys: ChunkKeys

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage of a node as a chunk.

        Raises
        ------
        ValueError
            If the number in the metadata is not an integer, and the place is not known otherwise.
        """
        node: BaseNode = passage.source
        start = node.start_char_idx if isinstance(node, TextNode) else None
        placed = None
        if not links_of(node).any:
            placed = self.chunk_keys.numbered(passage, otherwise=start is not None)
        parent = _id(node, NodeRelationship.PARENT)
        whole = parent or node.ref_doc_id or node.node_id
        document, number = placed or (whole, None)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        heading = self.chunk_keys.heading_of(node.metadata)
        return Chunk(node.node_id, text, document, number, start, heading, passage)

    def links(self, passage: Passage) -> Links:
        """Return the neighbours that the node of a passage names."""
        return links_of(passage.source)


@dataclass(frozen=True)
class LinkedNodes:
    """A `shared_core.neighbour_spans.ChunkSource` over a document store.

    The store is queried once for the seeds and once for each step of the window, for all seeds
    together. A node that it does not have is a missing neighbour. So is one that a node does not
    name, unless the document is known to end there: many pipelines write PREVIOUS alone, and a
    document store cannot find the nodes that name another. Numbers and offsets place no node:
    there may be others between two nodes that were fetched.

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
        """Return the neighbours of each seed; see `shared_core.neighbour_spans.ChunkSource`.

        Warns if the store has neither the seeds nor any node that they link to.
        """
        given: dict[str, BaseNode] = {seed.id: seed.source.source for seed in seeds}
        fetched = self._fetch(given)
        nodes = {**given, **fetched}
        sides = {step: [*nodes.values()] for step in (-1, 1)}
        for _ in range(window):
            ids = {
                step: [id for node in side if (id := links_of(node).id(step)) is not None]
                for step, side in sides.items()
            }
            wanted = dict.fromkeys(id for side in ids.values() for id in side)
            fetched |= self._fetch(id for id in wanted if id not in fetched)
            sides = {
                step: [fetched[id] for id in side if id in fetched] for step, side in ids.items()
            }
        if not fetched and any(links_of(node).any for node in given.values()):
            warnings.warn(
                "the docstore has neither the retrieved nodes nor those that they link to. A "
                "vector store that keeps the text itself leaves it empty: use "
                "NeighbourSpanPostprocessor.from_nodes(nodes)",
                stacklevel=2,
            )
        passages = [to_passage(node) for node in (given | fetched).values()]
        chunks = map(self.reader.chunk, passages)
        among = PassageNeighbours.among(chunks, map(self.reader.links, passages))
        return among.around(seeds, window)

    def _fetch(self, ids: Iterable[str]) -> dict[str, BaseNode]:
        wanted = [*ids]
        found = self.docstore.get_nodes(wanted, raise_error=False) if wanted else ()
        return {node.node_id: node for node in found}


def links_of(node: BaseNode) -> Links:
    """Return the previous and the next node that a node names.

    Where a PARENT ends it is not known whether the document does.
    """
    edge: End = "document" if _id(node, NodeRelationship.PARENT) is None else "missing"
    previous, following = (
        _id(node, side) for side in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
    )
    return Links(previous, following, edge)


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None
