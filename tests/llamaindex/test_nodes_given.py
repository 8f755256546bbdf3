"""Nodes may be given in any iterable, and one node alone is refused; see the contract, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools.types import ToolMetadata

from llamaindex_posrag import (
    CAUSRetriever,
    ContextAwarenessSelector,
    FusingRetriever,
    GatedQueryEngine,
    NeighbourSpanPostprocessor,
)
from shared_core import NeighbourSpans
from tests.core.gating.words import IDS, INSIDE, PASSAGES

from .test_gating import Words

NODES = [TextNode(id_=id, text=text) for id, text in zip(IDS, PASSAGES, strict=True)]
SEARCHED = CAUSRetriever.from_nodes(NODES, Words(), k=3)


def fused(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    return FusingRetriever(SEARCHED, given, higher_is_better=True).retrieve(INSIDE)


def spanned(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    post = NeighbourSpanPostprocessor.from_nodes(given, NeighbourSpans(window=1))
    return post.postprocess_nodes([NodeWithScore(node=NODES[1], score=1.0)])


def gated(given: Iterable[BaseNode]) -> list[NodeWithScore]:
    engine = GatedQueryEngine.from_retriever(SEARCHED, MockLLM(), given)
    return engine.decide(QueryBundle(INSIDE)).nodes


def selected(given: Iterable[BaseNode]) -> Any:
    choices = [ToolMetadata(description=kind) for kind in ("context", "direct")]
    return ContextAwarenessSelector.from_retriever(SEARCHED, given).select(choices, INSIDE)


@pytest.mark.parametrize("use", [fused, spanned, gated, selected])
@pytest.mark.filterwarnings("ignore:no passage says which chunk")
def test_nodes_may_come_one_by_one_and_others_are_named(use: Callable[[Any], Any]) -> None:
    """Retrieved ones are none: they have a node; and the fields of one would be nodes."""
    assert use(node for node in NODES) == use(NODES)
    for given in ("abc", NODES[0]):
        with pytest.raises(ValueError, match="nodes must be a list, got the "):
            use(given)
    with pytest.raises(ValueError, match=rf"nodes\[{len(IDS)}\] must be a BaseNode, got NodeWith"):
        use([*NODES, NodeWithScore(node=NODES[0])])
