"""Nodes as they are handed out: like the framework's own, and apart from those of the index."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
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

from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.nodes import isolated

from .doubles import WordEmbedding


class Noted(TextNode):
    """A node of a user's own class, with a private attribute."""

    _note: list[str] = PrivateAttr(default_factory=list)


class Open(TextNode):
    """A node that takes whatever fields it is given."""

    model_config = ConfigDict(extra="allow")


class Counted(TextNode):
    """A node that copies itself in its own way."""

    copies: int = 0

    def __copy__(self) -> Counted:
        return Counted(**{**self.model_dump(), "copies": self.copies + 1})


NODES = [
    TextNode(text="text", id_="n", metadata={"page": 1, "tags": ["a"]}, start_char_idx=3),
    TextNode(text="text", relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="m")}),
    IndexNode(text="text", index_id="other"),
    ImageNode(text="text", image_url="u"),
    Document(text="text", id_="d"),
    Noted(text="text"),
    Open(text="text", colour=["red"]),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_copy_is_equal_and_apart(node: BaseNode) -> None:
    """Of the same class, with the same fields set and dumped; changing it changes nothing else."""
    before = node.model_dump()
    copied = isolated(node)
    assert type(copied) is type(node)
    assert copied == node
    assert copied.model_fields_set == node.model_fields_set
    assert copied.model_dump() == before
    assert copied.hash == node.hash
    copied.metadata["page"] = 2
    copied.metadata.setdefault("tags", []).append("b")
    copied.excluded_llm_metadata_keys.append("page")
    copied.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="s")
    copied.set_content("other")
    copied.embedding = [1.0]
    assert node.model_dump() == before
    assert "embedding" not in node.model_fields_set


@pytest.mark.parametrize("kind", [TextNode, Document, Counted])
def test_the_embedding_of_a_copy_is_its_own(kind: type[BaseNode]) -> None:
    """As of the nodes that a retriever shows, and of the objects that index nodes lead to."""
    node: Any = kind(id_="n", embedding=[1.0, 2.0])
    copied = isolated(node)
    assert copied.embedding == [1.0, 2.0]
    copied.embedding.append(7.0)
    assert node.embedding == [1.0, 2.0]


@pytest.mark.parametrize("kind", [Node, Document])
def test_the_resources_of_a_copy_are_its_own(kind: type[Node]) -> None:
    """As of what an index holds, of what it hands out, and of the caller's own nodes."""
    node = kind(
        id_="n",
        text_resource=MediaResource(text="pooling layer", embeddings={"dense": [1.0]}),
        image_resource=MediaResource(url="https://localhost/a.png"),
        relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id="m")]},
    )
    before = node.model_dump()
    retriever = CAUSRetriever.from_nodes([node], WordEmbedding())
    for copied in (isolated(node), *(retriever.retrieve("pooling")[0].node for _ in range(2))):
        assert isinstance(copied, kind)
        assert copied.text_resource is not None
        assert copied.text_resource.embeddings is not None
        assert copied.image_resource is not None
        assert copied.model_dump() == before
        copied.text_resource.text = "x"
        copied.text_resource.embeddings["dense"].append(7.0)
        copied.text_resource.embeddings["sparse"] = [2.0]
        copied.image_resource.mimetype = "image/png"
        copied.relationships[NodeRelationship.CHILD].append(RelatedNodeInfo(node_id="o"))
    assert node.model_dump() == before
    assert node.text_resource is not None
    node.text_resource.text = "y"
    assert retriever.retrieve("pooling")[0].node.get_content() == "pooling layer"


def test_private_and_extra_fields_come_along() -> None:
    """As they do when such a node is copied otherwise."""
    noted = Noted(text="text")
    noted._note.append("read")
    copied = isolated(noted)
    assert isinstance(copied, Noted)
    assert copied._note == ["read"]
    opened: Any = isolated(Open(text="text", colour=["red"]))
    assert opened.colour == ["red"]


def test_a_class_that_copies_itself_is_let_to() -> None:
    """What it does there is its own."""
    copied = isolated(Counted(text="text"))
    assert isinstance(copied, Counted)
    assert copied.copies == 1
