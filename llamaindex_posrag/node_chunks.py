"""Nodes as chunks of documents, and those of a document store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.filters import SOURCE, WITHOUT_SOURCE
from llamaindex_posrag.nodes import to_passage
from llamaindex_posrag.persistence import node_of
from shared_core import Passage
from shared_core.neighbour_spans import Chunk, ChunkKeys, End, LinkedStore, Links


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
        node = node_of(passage)
        start = node.start_char_idx if isinstance(node, TextNode) else None
        placed = None
        if not self.links(passage).any:
            placed = self.chunk_keys.numbered(passage, otherwise=start is not None)
        parent = _id(node, NodeRelationship.PARENT)
        whole = parent or node.ref_doc_id or node.node_id
        document, number = placed or (whole, None)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        heading = self.chunk_keys.heading_of(node.metadata)
        return Chunk(node.node_id, text, document, number, start, heading, passage)

    def links(self, passage: Passage) -> Links:
        """Return the previous and the next node that the node of a passage names.

        Where a PARENT ends it is not known whether the document does.
        """
        node = node_of(passage)
        edge: End = "document" if _id(node, NodeRelationship.PARENT) is None else "missing"
        previous = _id(node, NodeRelationship.PREVIOUS)
        return Links(previous, _id(node, NodeRelationship.NEXT), edge)

    def document_of(self, passage: Passage) -> tuple[str, str] | None:
        """Return the key and value by which the metadata name the document of a passage."""
        numbered = self.chunk_keys.number in passage.metadata and not self.links(passage).any
        if numbered and (named := self.chunk_keys.document_of(passage)):
            return named
        source = passage.metadata.get(SOURCE, WITHOUT_SOURCE)
        return None if source == WITHOUT_SOURCE else (SOURCE, source)


def stored_neighbours(docstore: BaseDocumentStore, reader: NodeChunks) -> LinkedStore:
    """Return a source of neighbours over a document store."""
    return LinkedStore(partial(_read, docstore), reader)


def _read(docstore: BaseDocumentStore, ids: list[str]) -> list[Passage]:
    return [to_passage(node) for node in docstore.get_nodes(ids, raise_error=False)]


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None
