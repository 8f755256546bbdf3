"""Nodes as they are handed out: like the framework's own, and apart from those of the index."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)

from llamaindex_posrag import CAUSRetriever, ExplainedNode

from .doubles import WordEmbedding

NODES: list[BaseNode] = [
    TextNode(text="text", id_="n", metadata={"page": 1, "tags": ["a"]}, start_char_idx=3),
    TextNode(text="text", relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="m")}),
    IndexNode(text="text", index_id="other"),
    ImageNode(text="text", image_url="u"),
    *(
        kind(
            text_resource=MediaResource(text="text", embeddings={"dense": [1.0]}),
            image_resource=MediaResource(url="https://localhost/a.png"),
            relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id="m")]},
        )
        for kind in (Node, Document)
    ),
]


def found(retriever: CAUSRetriever) -> ExplainedNode:
    (hit,) = retriever.retrieve("text")
    assert isinstance(hit, ExplainedNode)
    return hit


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_comes_as_it_was_and_apart(node: BaseNode) -> None:
    """Of its class, with all it had; changing it changes neither the caller's nor the index's."""
    before: Any = node.model_copy(deep=True)
    retriever = CAUSRetriever.from_nodes([node], WordEmbedding())
    for _ in range(2):
        copied: Any = found(retriever).node
        assert type(copied) is type(node)
        assert copied == before
        assert copied.model_dump() == before.model_dump()
        assert copied.model_fields_set - {"embedding"} == before.model_fields_set - {"embedding"}
        assert copied.hash == before.hash

        copied.metadata.setdefault("tags", []).append("b")
        copied.excluded_llm_metadata_keys.append("page")
        copied.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="s")
        for related in copied.relationships.values():
            if isinstance(related, list):
                related.append(RelatedNodeInfo(node_id="o"))
        if type(node) in (Node, Document):
            copied.text_resource.embeddings["dense"].append(7.0)
            copied.text_resource.embeddings["sparse"] = [2.0]
            copied.image_resource.mimetype = "image/png"
        copied.set_content("other")
        copied.embedding = [1.0]
        assert node == before
    node.set_content("other")
    assert found(retriever).node.get_content(MetadataMode.NONE) == "text"
