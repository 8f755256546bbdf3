"""Which chunk of which document a node is."""

from __future__ import annotations

from dataclasses import dataclass

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from shared_core import Passage
from shared_core.expansion import Chunk
from shared_core.index import ChunkKeys
from shared_core.index.neighbours.links import Links


@dataclass(frozen=True, slots=True)
class NodeChunks:
    """Reads the place of a node, as a `ChunkReader` of `shared_core.index.neighbours.places`.

    Its PREVIOUS and NEXT relationships tell it; where it has neither, the numbers in its
    metadata; where there are none, the offset at which it starts. Offsets count in the source
    document, or in the PARENT node where it has one, as of `HierarchicalNodeParser`: that parent
    is then the document, and what lies beyond its edges is not known. The text of a chunk is the
    node's own, without metadata, which is what offsets count in.

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
            If the metadata hold a number that is no integer and nothing else tells the place.
        """
        node: BaseNode = passage.source
        start = node.start_char_idx if isinstance(node, TextNode) else None
        placed = None
        if not any(links_of(node)):
            placed = self.chunk_keys.numbered(passage, otherwise=start is not None)
        whole = parent_of(node) or node.ref_doc_id or node.node_id
        document, number = placed or (whole, None)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        heading = self.chunk_keys.heading_of(node.metadata)
        return Chunk(node.node_id, text, document, number, start, heading, passage)

    def links(self, passage: Passage) -> Links | None:
        """Return the previous and the next node; None if it names neither, nor a parent.

        Whether the document ends where the parent does is not known.
        """
        previous, following = links_of(passage.source)
        if parent_of(passage.source) is not None:
            return Links(previous, following, edge="missing")
        return None if previous is None and following is None else Links(previous, following)


def links_of(node: BaseNode) -> tuple[str | None, str | None]:
    """Return the ids of the nodes that a node names as the previous and the next one."""
    return _id(node, NodeRelationship.PREVIOUS), _id(node, NodeRelationship.NEXT)


def parent_of(node: BaseNode) -> str | None:
    """Return the id of the larger node that a node was split from; None if it names none."""
    return _id(node, NodeRelationship.PARENT)


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None
