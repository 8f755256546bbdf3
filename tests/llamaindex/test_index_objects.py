"""What index nodes lead to: with the score and the explanation they were found with, as copies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, TextNode

from llamaindex_posrag import CAUSRetriever, FusingRetriever

from .checks import facts, ids
from .doubles import WordEmbedding

QUERY = "pool layer"

Retriever = CAUSRetriever | FusingRetriever
Make = Callable[[list[BaseNode], dict[str, Any]], Retriever]
Way = Callable[[Retriever, str], list[NodeWithScore]]

MAKES: dict[str, Make] = {
    "own index": lambda nodes, objects: CAUSRetriever.from_nodes(
        nodes, WordEmbedding(), object_map=objects, k=9, fusion="min_max"
    ),
    "from_index": lambda nodes, objects: FusingRetriever.from_index(
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


def test_the_worst_hit_keeps_its_score_of_zero(make: Make, way: Way) -> None:
    """And the object its place, with the explanation of the index node."""
    plain = way(make(corpus(), {}), QUERY)
    led = way(make(corpus(TextNode(id_="behind", text="the object")), {}), QUERY)
    assert facts(plain)[-1] == ("sign", 0.0)
    assert facts(led)[-1] == ("behind", 0.0)
    assert [hit.score for hit in led] == [hit.score for hit in plain]
    assert [hit.posrag for hit in led] == [hit.posrag for hit in plain]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [TextNode, Document])
@pytest.mark.parametrize("scored", [False, True])
def test_an_object_comes_as_a_copy(
    make: Make, way: Way, kind: type[BaseNode], scored: bool
) -> None:
    """With a score of its own, if it has one; explained as the index node is."""
    plain: Any = way(make(corpus(), {}), QUERY)[-1]
    node: Any = kind(id_="behind", text="the object", metadata={"tags": ["a"]})
    target = NodeWithScore(node=node, score=7.5) if scored else node
    before = target.model_dump()
    hit: Any = way(make(corpus(), {"s": target}), QUERY)[-1]
    assert (type(hit.node), hit.node) == (kind, node)
    assert (hit.score, hit.posrag) == (7.5 if scored else plain.score, plain.posrag)
    hit.score = 0.5
    hit.node.metadata["tags"].append("b")
    hit.node.set_content("changed")
    assert target.model_dump() == before


def test_an_object_that_is_found_itself_comes_once(make: Make, way: Way) -> None:
    nodes = corpus()
    nodes[-1] = IndexNode(id_="sign", index_id="s", text="other things", obj=nodes[0])
    assert sorted(ids(way(make(nodes, {}), QUERY))) == ["t0", "t1", "t2", "t3", "t4"]


def test_what_another_retriever_finds_comes_as_it_gives_it(make: Make, way: Way) -> None:
    behind = VectorStoreIndex(
        [TextNode(id_="behind", text="pool")], embed_model=WordEmbedding()
    ).as_retriever()
    assert facts(way(make(corpus(), {"s": behind}), QUERY))[-1:] == facts(behind.retrieve(QUERY))


def test_an_answer_has_the_score_of_what_led_to_it(make: Make, way: Way) -> None:
    engine = RetrieverQueryEngine.from_args(
        CAUSRetriever.from_nodes(corpus()[:2], WordEmbedding()), llm=MockLLM()
    )
    hit = way(make(corpus(), {"s": engine}), QUERY)[-1]
    assert "pool layer" in hit.node.get_content()
    assert hit.score == 0.0
