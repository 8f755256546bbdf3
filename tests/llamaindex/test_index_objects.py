"""Index nodes lead to their objects, as in LlamaIndex's own retrievers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, TextNode

from llamaindex_posrag import CAUSRetriever

from .checks import facts, ids
from .doubles import WordEmbedding

QUERY = "pool layer"

Make = Callable[[list[BaseNode], dict[str, Any]], CAUSRetriever]
Way = Callable[[CAUSRetriever, str], list[NodeWithScore]]

MAKES: dict[str, Make] = {
    "own index": lambda nodes, objects: CAUSRetriever.from_nodes(
        nodes, WordEmbedding(), object_map=objects, k=9, fusion="min_max"
    ),
    "from_index": lambda nodes, objects: CAUSRetriever.from_index(
        VectorStoreIndex(nodes, embed_model=WordEmbedding()),
        higher_is_better=True,
        object_map=objects,
        k=9,
    ),
}

WAYS: dict[str, Way] = {
    "retrieve": lambda retriever, query: retriever.retrieve(query),
    "aretrieve": lambda retriever, query: asyncio.run(retriever.aretrieve(query)),
    "retrieve_batch": lambda retriever, query: retriever.retrieve_batch([query, query])[1],
}


def corpus(led_to: BaseNode | None = None) -> list[BaseNode]:
    """Five nodes about the query, and one about something else, that may lead somewhere."""
    nodes: list[BaseNode] = [
        TextNode(id_=f"t{i}", text=f"pool layer number {i}" + " pool" * i) for i in range(5)
    ]
    text = "something else entirely"
    return [*nodes, IndexNode(id_="sign", index_id="s", text=text, obj=led_to)]


@pytest.fixture(params=MAKES.values(), ids=MAKES)
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    taken: Way = request.param
    return taken


def test_an_object_stands_where_the_index_node_stood(make: Make, way: Way) -> None:
    """It may be named by the retriever; the other hits are as they were, the worst at 0.0."""
    behind = TextNode(id_="behind", text="the object")
    plain = way(make(corpus(), {}), QUERY)
    assert facts(plain)[-1] == ("sign", 0.0)
    for nodes, objects in ((corpus(behind), {}), (corpus(), {"s": behind})):
        led = way(make(nodes, objects), QUERY)
        assert led[:-1] == plain[:-1]
        assert led[-1].node == behind


def test_an_object_that_is_found_itself_comes_once(make: Make, way: Way) -> None:
    nodes = corpus()
    nodes[-1] = IndexNode(id_="sign", index_id="s", text="other things", obj=nodes[0])
    assert sorted(ids(way(make(nodes, {}), QUERY))) == ["t0", "t1", "t2", "t3", "t4"]


def test_what_another_retriever_finds_comes_as_it_gives_it(make: Make, way: Way) -> None:
    behind = VectorStoreIndex(
        [TextNode(id_="behind", text="pool")], embed_model=WordEmbedding()
    ).as_retriever()
    assert facts(way(make(corpus(), {"s": behind}), QUERY))[-1:] == facts(behind.retrieve(QUERY))
