"""Between LlamaIndex's nodes and the core's passages and chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore
from pydantic import SkipValidation

from llamaindex_posrag.embedding import embedded_query, embedded_text
from llamaindex_posrag.filters import filterable
from llamaindex_posrag.persistence import node_of
from shared_core import Arrangement, Passage
from shared_core.index.passages import check_passages
from shared_core.metadata import copied, merge_explanation
from shared_core.neighbour_spans import (
    Chunk,
    ChunkKeys,
    ExpandedArrangement,
    Links,
    Neighbourhood,
    PassageNeighbours,
    Span,
)
from shared_core.neighbour_spans.places import SOURCE, WITHOUT_SOURCE


class ExplainedNode(NodeWithScore):
    """A node, or a span of nodes, with its score and the explanation of its slot.

    Retrievers and postprocessors return it where LlamaIndex's types say `NodeWithScore`;
    ``isinstance(hit, ExplainedNode)`` makes ``hit.posrag`` known to a type checker.

    The explanation is not in the node's metadata: there it would change ``node.hash`` (by which
    LlamaIndex recognises the same node from two retrievers) and would have to be kept out of
    every prompt.

    Attributes
    ----------
    node
        The node; its id, text, metadata and hash are those of the one that came in. A span of
        several nodes has the id and metadata of its best one.
    score
        Fused score in [0, 1], higher is better, a Python float; of a span, that of its best node.
    posrag
        JSON-able; the keys are those of `shared_core.Arrangement.explain`, and for a span those
        of `shared_core.neighbour_spans.Span.explain` as well.
    """

    posrag: SkipValidation[dict[str, Any]] = Field(default_factory=dict)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises the class."""
        return "ExplainedNode"


def explained(nodes: Iterable[BaseNode], arrangement: Arrangement) -> list[NodeWithScore]:
    """Pair nodes, given slot by slot, with their scores and explanations."""
    return [
        ExplainedNode(node=node, score=why["score"], posrag=why)
        for node, why in zip(nodes, arrangement.explain(), strict=True)
    ]


def nodes_of(arrangement: Arrangement, query: QueryBundle) -> list[NodeWithScore]:
    """Return the nodes, or the spans, of an arrangement of passages.

    Each names the text that was embedded, which need not be that of the sparse leg.
    """
    nodes = map(node_of, arrangement.passages)
    if isinstance(arrangement, ExpandedArrangement):
        found = explained(map(spanned, nodes, arrangement.spans), arrangement)
    else:
        found = explained(map(isolated, nodes), arrangement)
    if (embedded := embedded_query(query)) != arrangement.ranking.query:
        for why in map(explanation, found):
            if "query" in why:
                why["query"] = embedded
    return found


def spanned(node: BaseNode, span: Span) -> BaseNode:
    """Return a copy of a node with the text of the span around it.

    The metadata, and so all that they add to a prompt, are those of the node. The relationships
    to the previous and the next node, and the offsets, are those of the span; it has no embedding.
    """
    copied = isolated(node)
    if len(span.chunks) == 1:
        return copied
    first, last = span.chunks[0], span.chunks[-1]
    copied.set_content(span.text)
    copied.embedding = None
    for relationship, chunk in (
        (NodeRelationship.PREVIOUS, first),
        (NodeRelationship.NEXT, last),
    ):
        copied.relationships.pop(relationship, None)
        # a custom source may hold anything
        outermost = node_of(chunk.source) if isinstance(chunk.source, Passage) else None
        if outermost is not None and relationship in outermost.relationships:
            copied.relationships[relationship] = outermost.relationships[relationship]
    if isinstance(copied, TextNode):
        copied.start_char_idx, copied.end_char_idx = first.start, last.end
    return copied


def with_slot(node: NodeWithScore, why: Mapping[str, Any] | None) -> ExplainedNode:
    """Return a copy with the explanation of its new slot, in place of that of an earlier one.

    None: it keeps the earlier one.
    """
    earlier = explanation(node)
    posrag = {**earlier} if why is None else merge_explanation(earlier, why)
    return ExplainedNode(node=node.node, score=node.score, posrag=posrag)


def explanation(node: NodeWithScore) -> dict[str, Any]:
    """Return the explanation of a node by earlier steps; empty if there is none."""
    return node.posrag if isinstance(node, ExplainedNode) else {}


def isolated(node: BaseNode) -> BaseNode:
    """Copy a node so that changing the copy leaves the original as it is.

    The `RelatedNodeInfo` objects are shared by both, to be replaced and not changed: copying
    those of ten nodes would take a tenth of a search.

    Raises
    ------
    ValueError
        If a value of the metadata cannot be copied.
    """
    metadata = copied(node.metadata, lambda: f"node {node.node_id!r}")
    twin = copy(node)
    fields = vars(twin)
    fields["metadata"] = metadata
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        fields[name] = fields[name].copy()
    if node.embedding is not None:
        fields["embedding"] = node.embedding.copy()
    fields["relationships"] = {
        kind: [*related] if isinstance(related, list) else related
        for kind, related in fields["relationships"].items()
    }
    if isinstance(node, Node):
        fields |= {name: deepcopy(fields[name]) for name in fields if name.endswith("_resource")}
    return twin


def to_passage(node: BaseNode) -> Passage:
    """Make the passage that an index holds for a node; the vector is stored apart from it."""
    source = isolated(node)
    source.embedding = None
    return Passage(
        id=node.node_id, text=embedded_text(node), metadata=filterable(source), source=source
    )


def as_passages(found: Iterable[NodeWithScore]) -> list[Passage]:
    """Return nodes as passages that are only read."""
    return [
        Passage(each.node_id, embedded_text(each.node), filterable(each.node), each.node)
        for each in found
    ]


def passages_of(nodes: Sequence[BaseNode]) -> list[Passage]:
    """Return the passages of nodes, for an index.

    Raises
    ------
    ValueError
        If two share an id, or metadata cannot be copied.
    """
    passages = [to_passage(node) for node in nodes]
    check_passages(passages)
    return passages


@dataclass(frozen=True, slots=True)
class NodeChunks:
    """Reads the place of a node, as a `ChunkReader` of `shared_core.neighbour_spans`.

    It is given by the PREVIOUS and NEXT relationships; without both, by the number in the
    metadata; without that, by the offset at which the node starts. Offsets count in the source
    document, or in the PARENT node if there is one (`HierarchicalNodeParser`): the parent is then
    the document. A node without source document, PARENT and links, such as a passage that LangChain
    saved, is placed by its metadata alone. The text of a chunk is that of the node without
    metadata, which offsets refer to.

    Attributes
    ----------
    chunk_keys
        Metadata keys of the place.
    """

    chunk_keys: ChunkKeys

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage of a node as a chunk."""
        node = node_of(passage)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        links, parent = self.links(passage), _id(node, NodeRelationship.PARENT)
        start = node.start_char_idx if isinstance(node, TextNode) else None
        if start is None and not (links.any or parent or node.ref_doc_id):
            return replace(self.chunk_keys.chunk(passage), text=text)
        placed = None if links.any else self.chunk_keys.numbered(passage)
        whole = parent or node.ref_doc_id or node.node_id
        document, number = placed or (whole, None)
        heading = self.chunk_keys.heading_of(node.metadata)
        return Chunk(node.node_id, text, document, number, start, heading, passage)

    def links(self, passage: Passage) -> Links:
        """Return the previous and the next node that the node of a passage names."""
        node = node_of(passage)
        return Links(_id(node, NodeRelationship.PREVIOUS), _id(node, NodeRelationship.NEXT))

    def document_of(self, passage: Passage) -> tuple[str, str] | None:
        """Return the key and value by which the metadata name the document of a passage."""
        numbered = self.chunk_keys.number in passage.metadata and not self.links(passage).any
        source = passage.metadata.get(SOURCE, WITHOUT_SOURCE)
        if not numbered and source != WITHOUT_SOURCE:
            return SOURCE, source
        return self.chunk_keys.document_of(passage)


@dataclass(frozen=True, slots=True)
class StoredNodes:
    """A `ChunkSource` over a document store: it reads the source documents of the seeds."""

    docstore: BaseDocumentStore
    reader: NodeChunks

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        """Return the neighbours of each seed; warn if the store has none of the documents."""
        documents = dict.fromkeys(node_of(seed.source).ref_doc_id for seed in seeds)
        held = [self.docstore.get_ref_doc_info(id) for id in documents if id is not None]
        ids = [id for info in held if info is not None for id in info.node_ids]
        nodes = self.docstore.get_nodes(ids, raise_error=False)
        if not nodes and any(documents):
            warnings.warn(
                "the store has no nodes of the documents that were retrieved. A vector store that "
                "keeps the text itself leaves the docstore empty: give the nodes themselves, with "
                "from_nodes",
                stacklevel=2,
            )
            return [*map(Neighbourhood, seeds)]
        return PassageNeighbours(map(to_passage, nodes), self.reader).around(seeds, window)


def _id(node: BaseNode, relationship: NodeRelationship) -> str | None:
    related = node.relationships.get(relationship)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None
