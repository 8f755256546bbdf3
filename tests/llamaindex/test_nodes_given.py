"""Nodes may be given in any iterable, and one node alone is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools.types import ToolMetadata

from llamaindex_posrag import (
    CAUSPostprocessor,
    CAUSRetriever,
    ContextAwarenessSelector,
    FusingRetriever,
    GatedQueryEngine,
    NeighbourSpanPostprocessor,
)
from shared_core.neighbour_spans import NeighbourSpans
from tests.core.gating.words import IDS, INSIDE, PASSAGES

from .doubles import WordEmbedding
from .test_gating import Words
from .test_neighbour_spans import relinked


def nodes() -> list[BaseNode]:
    """Return linked nodes, a passage each."""
    return relinked([TextNode(id_=id, text=text) for id, text in zip(IDS, PASSAGES, strict=True)])


def searched() -> BaseRetriever:
    return CAUSRetriever.from_nodes(nodes(), Words(), k=3)


def retrieved(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    return CAUSRetriever.from_nodes(given, Words(), k=3).retrieve(INSIDE)


def fused(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    return FusingRetriever(searched(), given, higher_is_better=True).retrieve(INSIDE)


def rescored(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    found = searched().retrieve(INSIDE)
    return CAUSPostprocessor.from_nodes(given).postprocess_nodes(found, query_str=INSIDE)


def spanned(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    post = NeighbourSpanPostprocessor.from_nodes(given, NeighbourSpans(window=1))
    return post.postprocess_nodes([NodeWithScore(node=nodes()[1], score=1.0)])


def embedded(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    post = NeighbourSpanPostprocessor.from_nodes(given, embed_model=WordEmbedding())
    return post.postprocess_nodes([NodeWithScore(node=nodes()[1], score=1.0)])


def gated(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    engine = GatedQueryEngine.from_retriever(searched(), MockLLM(), given)
    return engine.decide(QueryBundle(INSIDE)).nodes


def selected(given: Iterable[BaseNode]) -> Any:
    choices = [ToolMetadata(description=kind) for kind in ("context", "direct")]
    return ContextAwarenessSelector.from_retriever(searched(), given).select(choices, INSIDE)


USES = [retrieved, fused, rescored, spanned, embedded, gated, selected]


@pytest.mark.parametrize("use", USES)
def test_nodes_that_come_one_by_one_are_read_once(use: Callable[[Any], Any]) -> None:
    """What reads them twice finds none the second time, and loses them without a word."""
    assert use(node for node in nodes()) == use(nodes()) == use(tuple(nodes()))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("given", ["abc", TextNode(text="abc")])
def test_one_node_is_no_list_of_nodes(use: Callable[[Any], Any], given: Any) -> None:
    """Its fields would be nodes."""
    with pytest.raises(ValueError, match="nodes must be a list, got the "):
        use(given)


@pytest.mark.parametrize("use", USES)
def test_what_is_no_node_is_named(use: Callable[[Any], Any]) -> None:
    """Retrieved ones are none: they have a node."""
    given = [*nodes(), NodeWithScore(node=TextNode(text="x"))]
    with pytest.raises(ValueError, match=rf"nodes\[{len(IDS)}\] must be a BaseNode, got NodeWith"):
        use(given)
