"""Several documents or nodes, wherever they are given: read once, and never one for several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import QueryBundle
from llama_index.core.tools.types import ToolMetadata

import langchain_posrag as lc
import llamaindex_posrag as li
from tests.core.gating.words import INSIDE

from .drivers import LangChain, LlamaIndex
from .test_gate import CORPUS, embedded

LANGCHAIN, LLAMAINDEX = LangChain(), LlamaIndex()
MODELS = LANGCHAIN.model(embedded), LLAMAINDEX.model(embedded)
DOCUMENTS, NODES = LANGCHAIN.items(CORPUS), LLAMAINDEX.items(CORPUS)
STORE = InMemoryVectorStore.from_documents(DOCUMENTS, MODELS[0])
INDEX = VectorStoreIndex(NODES, embed_model=MODELS[1])
SEARCHED = LLAMAINDEX.build(CORPUS, MODELS[1], k=3)
SCORED = LLAMAINDEX.items(CORPUS[:5], [0.9, 0.8, 0.7, 0.6, 0.5])
CHOICES = [ToolMetadata(description=kind) for kind in ("context", "direct")]

Use = Callable[[Any], Any]
OF_DOCUMENTS: dict[str, Use] = {
    "retriever": lambda given: LANGCHAIN.built(given, MODELS[0]).invoke(INSIDE),
    "vector store": lambda given: lc.CAUSRetriever.from_vectorstore(STORE, given).invoke(INSIDE),
    "statistics": lambda given: lc.HybridScoreCompressor.from_documents(given).compress_documents(
        DOCUMENTS, INSIDE
    ),
    "candidates": lambda given: lc.HybridScoreCompressor().compress_documents(given, INSIDE),
    "placement": lambda given: lc.PlacementTransformer().invoke(given),
    "spans": lambda given: lc.NeighbourSpanTransformer().invoke(given),
    "chunks": lambda given: lc.NeighbourSpanTransformer.from_documents(given).invoke(DOCUMENTS),
    "gate": lambda given: lc.ContextAwarenessGate.from_retriever(
        STORE.as_retriever(), MODELS[0], given
    ).invoke(INSIDE),
}
OF_NODES: dict[str, Use] = {
    "retriever": lambda given: LLAMAINDEX.built(given, MODELS[1]).retrieve(INSIDE),
    "index": lambda given: li.CAUSRetriever.from_index(INDEX, given).retrieve(INSIDE),
    "statistics": lambda given: li.CAUSPostprocessor.from_nodes(given).postprocess_nodes(
        SCORED, query_str=INSIDE
    ),
    "chunks": lambda given: li.NeighbourSpanPostprocessor.from_nodes(given).postprocess_nodes(
        SCORED
    ),
    "gate": lambda given: li.GatedQueryEngine.from_retriever(SEARCHED, MockLLM(), given).decide(
        QueryBundle(INSIDE)
    ),
    "selector": lambda given: li.ContextAwarenessSelector.from_retriever(SEARCHED, given).select(
        CHOICES, INSIDE
    ),
}
USES = [
    *(pytest.param(use, DOCUMENTS, "Document", id=f"LC {n}") for n, use in OF_DOCUMENTS.items()),
    *(pytest.param(use, NODES, "BaseNode", id=f"LI {n}") for n, use in OF_NODES.items()),
]


@pytest.mark.parametrize(("use", "items", "one"), USES)
@pytest.mark.filterwarnings("ignore:no passage says which chunk")
def test_several_may_come_one_by_one_and_what_is_none_is_named(
    use: Use, items: Sequence[Any], one: str
) -> None:
    """What reads them twice finds none the second time; and the fields of one would be items."""
    assert use(iter(items)) == use(items)
    for given, told in (
        (items[0], "must be a list, got the "),
        ({"documents": items}, "(must be a list, got|sparse= takes documents.*) {'documents'"),
        ([items[0], "abc"], rf"\[1\] must be a {one}, got 'abc'"),
    ):
        with pytest.raises(ValueError, match=told):
            use(given)
