"""Index nodes lead to their objects, as in LlamaIndex's own retrievers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, TextNode

from llamaindex_posrag import CAUSRetriever

from .checks import facts
from .doubles import WordEmbedding

QUERY = "pool layer"


def corpus(led_to: BaseNode | None = None) -> list[BaseNode]:
    """Five nodes about the query, and one about something else, that may lead somewhere."""
    nodes: list[BaseNode] = [
        TextNode(id_=f"t{i}", text=f"pool layer number {i}" + " pool" * i) for i in range(5)
    ]
    text = "something else entirely"
    return [*nodes, IndexNode(id_="sign", index_id="s", text=text, obj=led_to)]


@pytest.mark.parametrize("over", ["own index", "from_index"])
def test_an_object_stands_where_the_index_node_stood(over: str) -> None:
    """It may be named by the retriever; the other hits are as they were, the worst at 0.0."""

    def found(nodes: list[BaseNode], **objects: Any) -> list[list[NodeWithScore]]:
        options: dict[str, Any] = {"object_map": objects, "k": 9, "fusion": "min_max"}
        index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
        if over == "own index":
            retriever = CAUSRetriever.from_nodes(nodes, WordEmbedding(), **options)
        else:
            retriever = CAUSRetriever.from_index(index, **options)
        return [
            retriever.retrieve(QUERY),
            asyncio.run(retriever.aretrieve(QUERY)),
            retriever.retrieve_batch([QUERY, QUERY])[1],
        ]

    behind = TextNode(id_="behind", text="the object")
    (plain, *_) = found(corpus())
    assert facts(plain)[-1] == ("sign", 0.0)
    for led in (*found(corpus(behind)), *found(corpus(), s=behind)):
        assert led[:-1] == plain[:-1]
        assert led[-1].node == behind
