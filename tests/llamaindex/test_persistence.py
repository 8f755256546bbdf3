"""Saving and loading a CAUSRetriever."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.nodes import to_passage
from llamaindex_posrag.persistence import decode_node, encode_node
from shared_core import (
    CAUS,
    IndexFormatError,
)

from .checks import ids
from .doubles import QUERY, TEXTS, WordEmbedding, corpus


class Chapter(TextNode):
    """A node class of the user's own."""

    number: int = 0

    @classmethod
    def class_name(cls) -> str:
        return "Chapter"


class Unnamed(TextNode):
    """One that does not override class_name."""


NODES: list[BaseNode] = [
    TextNode(text="text", metadata={"a": 1, "b": [1.5, None], "c": {"d": True}, "e": math.nan}),
    TextNode(text="with offsets", start_char_idx=3, end_char_idx=15),
    ImageNode(text="image", image="aGVsbG8=", image_path="pictures/a.png"),
    IndexNode(text="index", index_id="somewhere"),
    Document(text="document", metadata={"title": "t"}),
    Node(
        text_resource=MediaResource(text="all of it"),
        image_resource=MediaResource(data=b"\x89PNG not really", mimetype="image/png"),
        audio_resource=MediaResource(url="https://example.org/a.mp3"),
        video_resource=MediaResource(path=Path("films/a.mp4")),
    ),
    Chapter(text="chapter", number=7),
    Unnamed(text="unnamed"),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_survives_json(node: BaseNode) -> None:
    node.relationships = {
        NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d", metadata={"x": 1}, hash="h"),
        NodeRelationship.CHILD: [RelatedNodeInfo(node_id="c1"), RelatedNodeInfo(node_id="c2")],
    }
    node.excluded_llm_metadata_keys = ["a"]
    again = decode_node(json.loads(json.dumps(encode_node(node))))
    assert type(again) is type(node)
    assert again.hash == node.hash
    assert repr(again) == repr(node)


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2024, 1, 1),
        ("a", "tuple"),
        {1: "a key"},
        {"a set"},
        b"bytes",
        np.float64(0.5),  # equal to what JSON makes of it, but in another text and another hash
    ],
)
def test_metadata_that_json_would_change_is_refused(tmp_path: Path, value: Any) -> None:
    node = TextNode(id_="the one", text="text", metadata={"value": value})
    retriever = CAUSRetriever.from_nodes([node], WordEmbedding())
    with pytest.raises(ValueError, match="the one"):
        retriever.save(tmp_path / "index")


def test_a_node_that_json_cannot_hold_is_named(tmp_path: Path) -> None:
    """Not the type alone, somewhere in the corpus."""
    node = IndexNode(id_="n1", text="t", index_id="i", embedding=[1.0, 0.0], obj=object())
    retriever = CAUSRetriever.from_nodes([node], WordEmbedding())
    with pytest.raises(ValueError, match=r"node 'n1' cannot .* as JSON: .*; .* object_map=\{'i': "):
        retriever.save(tmp_path / "index")
    odd = TextNode(id_="n2", text="t", metadata={"score": np.float32(1)}, embedding=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"'n2' .*metadata\['score'\] is np.float32\(1"):
        CAUSRetriever.from_nodes([odd], WordEmbedding()).save(tmp_path / "index")


def test_nothing_is_imported_because_a_file_says_so() -> None:
    data = {"class": "antigravity.Node", "node": {}}
    with pytest.raises(IndexFormatError, match="antigravity"):
        decode_node(data)


@pytest.mark.parametrize("data", [None, [], "text", {"id": "1"}])
def test_what_is_not_a_node_is_refused(data: Any) -> None:
    with pytest.raises(IndexFormatError):
        decode_node(data)


def test_options_given_when_loading_win(tmp_path: Path) -> None:
    """And the others stay as they were saved."""
    caus = CAUS(k=3, alpha="auto", fusion="rrf", psi="always", placement="inverse")
    retriever = CAUSRetriever.from_nodes(corpus(), WordEmbedding())
    CAUSRetriever(retriever.index, retriever.embed_model, caus=caus).save(tmp_path / "index")
    filters = MetadataFilters(filters=[MetadataFilter(key="page", value=2)])
    loaded = CAUSRetriever.load(
        tmp_path / "index", WordEmbedding(), k=7, psi="never", filters=filters
    )
    assert loaded.caus == replace(caus, k=7, psi="never")
    assert ids(loaded.retrieve(QUERY)) == ["n2"]
    for wrong in ({"k": 0}, {"caus": caus}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            CAUSRetriever.load(tmp_path / "index", WordEmbedding(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="called k here: give k=2"):
        CAUSRetriever.load(tmp_path / "index", WordEmbedding(), similarity_top_k=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("earlier", [False, True])
def test_the_source_document_survives_for_filters(tmp_path: Path, earlier: bool) -> None:
    """Also out of folders that earlier versions saved, which have it in the nodes alone."""
    nodes, retriever = corpus(), CAUSRetriever.from_nodes([], WordEmbedding())
    passages = [to_passage(node) for node in nodes]
    if earlier:
        passages = [replace(each, metadata=each.source.metadata) for each in passages]
    retriever.index.add(passages, [WordEmbedding().get_text_embedding(t) for t in TEXTS])
    retriever.save(tmp_path / "index")
    excluded = MetadataFilter(key="doc_id", value="d0", operator=FilterOperator.NE)
    loaded = CAUSRetriever.load(
        tmp_path / "index",
        WordEmbedding(),
        verify=False,
        filters=MetadataFilters(filters=[excluded]),
    )
    assert {hit.node.ref_doc_id for hit in loaded.retrieve(QUERY)} == {"d1"}
