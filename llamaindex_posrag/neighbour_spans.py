"""The postprocessor that expands nodes by the nodes next to them.

`llamaindex_posrag.postprocessors` says when the order of the spans reaches the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import ConfigDict, Field, field_validator
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llamaindex_posrag.embedding import embed_nodes
from llamaindex_posrag.nodes import (
    ExplainedNode,
    NodeChunks,
    StoredNodes,
    explanation,
    spanned,
    to_passage,
)
from llamaindex_posrag.postprocessors import CAUSFieldsPostprocessor
from shared_core import ChunkKeys, NeighbourSpans
from shared_core.checking import check_each
from shared_core.metadata import merge_explanation
from shared_core.neighbour_spans import ChunkSource, PassageNeighbours, Span, place_spans


class NeighbourSpanPostprocessor(CAUSFieldsPostprocessor):
    """Expand retrieved nodes by their neighbours, within a token budget (RetriVex).

    Nodes that overlap or touch become one node, which no later step can separate. It has the id,
    class and metadata of the best retrieved one, and the text of the span, without repetitions.
    Its score is that of this node. ``posrag`` (`llamaindex_posrag.nodes.ExplainedNode`) says how it
    came about, with the ``span_score`` that spans are ranked by, its ``rank`` among them, its
    ``slot`` and its ``placement`` (the order of the spans). A node that takes in no neighbour is
    returned unchanged. The caller's nodes are not modified.

    A score that is None or NaN is missing and counts as the lowest of the others. If all are
    missing, the first of n nodes gets 1 and the last ``1 / n``. Infinite scores raise an error.

    Parameters
    ----------
    expand
        Window, token budget, weights and order of the spans.
    docstore
        Holds the neighbours: each query reads the source documents of its nodes. A vector store
        that keeps the text itself leaves it empty: use `from_nodes` there.
        None: neighbours are among the nodes of the call, so consecutive ones become one.
    chunk_keys
        Metadata keys of document, number and headings, see
        `llamaindex_posrag.nodes.NodeChunks`.
    higher_is_better
        False if the incoming scores are distances, such as those of FaissVectorStore with an L2
        index: they are negated first.
    chunks
        Source of neighbours instead of a docstore: that of `from_nodes`, or a custom
        `shared_core.neighbour_spans.ChunkSource`. Not part of `to_dict`.

    Raises
    ------
    ValueError
        If an option is out of range. When it is called: if the budget is smaller than the best
        node, or a score is infinite.
    TypeError
        If an option is unknown.
    """

    model_config = ConfigDict(extra="forbid")

    expand: NeighbourSpans = Field(default_factory=NeighbourSpans, frozen=True)
    chunk_keys: ChunkKeys = Field(default=ChunkKeys(), frozen=True)
    higher_is_better: bool = Field(default=True, frozen=True)
    # A field, not a private attribute: BaseComponent pickles fields only.
    chunks: ChunkSource | None = Field(default=None, frozen=True, exclude=True, repr=False)

    @field_validator("chunks", mode="plain")
    @classmethod
    def _check_chunks(cls, value: Any) -> Any:
        if value is not None and not hasattr(value, "around"):
            raise ValueError(f"chunks must be a ChunkSource, got {value!r}")
        return value

    def __init__(
        self,
        expand: NeighbourSpans | None = None,
        *,
        docstore: BaseDocumentStore | None = None,
        chunk_keys: ChunkKeys | None = None,
        higher_is_better: bool = True,
        chunks: ChunkSource | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        keys = ChunkKeys() if chunk_keys is None else chunk_keys
        if docstore is not None:
            if chunks is not None:
                raise ValueError("neighbours come from docstore= or chunks=, got both")
            chunks = StoredNodes(docstore, NodeChunks(keys))
        super().__init__(
            expand=NeighbourSpans() if expand is None else expand,
            chunk_keys=keys,
            higher_is_better=higher_is_better,
            chunks=chunks,
            callback_manager=callback_manager or CallbackManager(),
        )

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[BaseNode],
        expand: NeighbourSpans | None = None,
        *,
        embed_model: BaseEmbedding | None = None,
        chunk_keys: ChunkKeys | None = None,
        higher_is_better: bool = True,
    ) -> Self:
        """Return a postprocessor that takes neighbours from these nodes.

        Parameters
        ----------
        nodes
            All chunks, with unique ids. They are copied.
        embed_model
            Embeds nodes without an embedding, for the continuity of adjacent ones. None: if a node
            has no embedding, continuity is unknown, and every change of heading ends a span.
        expand, chunk_keys, higher_is_better
            As in the constructor.

        Raises
        ------
        ValueError
            If two nodes of different text share an id, one is not a node, or `nodes` is one node
            instead of several.
        """
        nodes = check_each(nodes, "nodes", BaseNode)
        keys = chunk_keys or ChunkKeys()
        vectors = None
        if embed_model is not None:
            vectors = embed_nodes(embed_model, nodes)
        elif all(node.embedding is not None for node in nodes):
            vectors = [node.get_embedding() for node in nodes]
        source = PassageNeighbours(map(to_passage, nodes), NodeChunks(keys), vectors or None)
        return cls(expand, chunk_keys=keys, higher_is_better=higher_is_better, chunks=source)

    def _processed(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle | None
    ) -> list[NodeWithScore]:
        placed = place_spans(
            [to_passage(node.node) for node in nodes],
            [node.score for node in nodes],
            self.expand,
            NodeChunks(self.chunk_keys),
            self.chunks,
            higher_is_better=self.higher_is_better,
        )
        return [_explain_span(nodes[best], span, why) for best, span, why in placed]


def _explain_span(seed: NodeWithScore, span: Span, why: dict[str, Any]) -> ExplainedNode:
    node = seed.node if len(span.chunks) == 1 else spanned(seed.node, span)
    return ExplainedNode(
        node=node, score=span.score.similarity, posrag=merge_explanation(explanation(seed), why)
    )
