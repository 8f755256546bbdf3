"""Nodes as JSON and back, and what a folder holds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    BaseNode,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUSRetriever, IndexFormatError
from llamaindex_posrag.persistence import decode_node, encode_node

from .doubles import QUERY, WordEmbedding, corpus
from .test_nodes import NODES


class Chapter(TextNode):
    """A node class of the user's own, which does not override class_name."""

    number: int = 0


SAVED: list[BaseNode] = [
    *NODES,
    TextNode(text="text", metadata={"b": [1.5, None], "c": {"d": True}, "e": math.nan}),
    ImageNode(text="image", image="aGVsbG8=", image_path="pictures/a.png"),
    Node(
        image_resource=MediaResource(data=b"\x89PNG not really", mimetype="image/png"),
        audio_resource=MediaResource(url="https://example.org/a.mp3"),
        video_resource=MediaResource(path=Path("films/a.mp4")),
    ),
    Chapter(text="chapter", number=7),
]


@pytest.mark.parametrize("node", SAVED, ids=lambda node: type(node).__name__)
def test_a_node_survives_json(node: BaseNode) -> None:
    node = node.model_copy()
    node.relationships = {
        NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d", metadata={"x": 1}, hash="h"),
        NodeRelationship.CHILD: [RelatedNodeInfo(node_id="c1"), RelatedNodeInfo(node_id="c2")],
    }
    node.excluded_llm_metadata_keys = ["a"]
    again = decode_node(json.loads(json.dumps(encode_node(node))))
    assert type(again) is type(node)
    assert again.hash == node.hash
    assert repr(again) == repr(node)


def test_a_node_that_json_cannot_hold_is_named(tmp_path: Path) -> None:
    """Not the type alone, somewhere in the corpus; and the way out."""
    sign = IndexNode(id_="n1", text="t", index_id="i", obj=object())
    odd = TextNode(id_="n2", text="t", metadata={"score": np.float32(1)})
    for node, told in (
        (sign, r"node 'n1' cannot .* as JSON: .*; .* object_map=\{"),
        (odd, r"'n2' .*metadata\['score'\] is np.float32\(1"),
    ):
        with pytest.raises(ValueError, match=told):
            CAUSRetriever.from_nodes([node], WordEmbedding()).save(tmp_path / "index")


@pytest.mark.parametrize("data", [{"class": "antigravity.Node", "node": {}}, None, {"id": "1"}])
def test_what_is_no_node_is_refused(data: Any) -> None:
    """And nothing is imported because a file says so."""
    with pytest.raises(IndexFormatError, match=r"antigravity\.Node is not loaded|does not hold"):
        decode_node(data)


def test_filters_are_saved_and_the_source_document_with_the_nodes(tmp_path: Path) -> None:
    excluded = MetadataFilter(key="doc_id", value="d0", operator=FilterOperator.NE)
    filters = MetadataFilters(filters=[excluded])
    CAUSRetriever.from_nodes(corpus(), WordEmbedding(), filters=filters).save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", WordEmbedding())
    assert {hit.node.ref_doc_id for hit in loaded.retrieve(QUERY)} == {"d1"}
    everything = CAUSRetriever.load(tmp_path / "index", WordEmbedding(), filters=None, k=12)
    assert len(everything.retrieve(QUERY)) == 12
