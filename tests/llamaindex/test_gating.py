"""The hosts of the gate: a query engine, and a selector under both routers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_selector import SelectorResult
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.instrumentation.events.query import QueryEndEvent
from llama_index.core.instrumentation.events.synthesis import SynthesizeStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool

from llamaindex_posrag import (
    CAUSRetriever,
    ContextAwarenessSelector,
    DirectQueryEngine,
    GatedQueryEngine,
)
from tests.adapters.drivers import LlamaIndexModel
from tests.adapters.gates import Rewriting
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed
from tests.llamaindex.doubles import traced

Ask = Callable[[BaseQueryEngine, str], Any]


Words = partial(LlamaIndexModel, documents=embed)


def nodes() -> list[TextNode]:
    return [TextNode(id_=id, text=text) for id, text in zip(IDS, PASSAGES, strict=True)]


@pytest.fixture
def retriever() -> CAUSRetriever:
    return CAUSRetriever.from_nodes(nodes(), Words(), k=3)


@pytest.fixture
def engine(retriever: CAUSRetriever) -> GatedQueryEngine:
    return GatedQueryEngine.from_retriever(retriever, MockLLM())


def queried(engine: BaseQueryEngine, query: str) -> Any:
    return engine.query(query)


def awaited(engine: BaseQueryEngine, query: str) -> Any:
    async def finished() -> Any:
        response = await engine.aquery(query)
        if isinstance(response, AsyncStreamingResponse):
            return await response.get_response()
        return response

    return asyncio.run(finished())


WAYS = [queried, awaited]


@pytest.mark.parametrize("ask", WAYS)
def test_a_trace_shows_query_and_synthesis(engine: GatedQueryEngine, ask: Ask) -> None:
    """The wrapping of a tool is no part of the question; every span is closed."""
    with traced() as trace:
        response = ask(engine, f"\ninput is {OUTSIDE}\n")
    assert [event.query.query_str for event in trace.of(SynthesizeStartEvent)] == [OUTSIDE]
    assert len(trace.of(QueryEndEvent)) == 1
    assert not trace.spans.open_spans
    assert not response.metadata["retrieval"]["retrieve"]


@pytest.mark.parametrize("ask", WAYS)
def test_both_kinds_of_question_are_answered_by_streams(retriever: CAUSRetriever, ask: Ask) -> None:
    """The mock repeats its prompt, so the answer shows which one it got."""
    engine = GatedQueryEngine.from_retriever(retriever, MockLLM(), streaming=True)
    inside, outside = ask(engine, INSIDE), ask(engine, OUTSIDE)
    if ask is queried:
        assert all(isinstance(each, StreamingResponse) for each in (inside, outside))
    assert PASSAGES[4] in str(inside)
    assert "Think step by step" in str(outside)
    assert outside.metadata["retrieval"]["retrieve"] is False


@pytest.mark.parametrize("ask", WAYS)
def test_a_router_asks_the_engine_that_the_gate_selects(retriever: CAUSRetriever, ask: Ask) -> None:
    """And its response carries the decision; the positions of the choices are the caller's."""
    llm = MockLLM()
    engines = [DirectQueryEngine(llm), RetrieverQueryEngine.from_args(retriever, llm=llm)]
    tools = [
        QueryEngineTool.from_defaults(engine, name=name, description=name)
        for engine, name in zip(engines, ("direct", "context"), strict=True)
    ]
    selector = ContextAwarenessSelector.from_retriever(retriever, context=1, direct=0)
    routed = RouterQueryEngine(selector, tools, llm=llm)
    inside, outside = ask(routed, INSIDE), ask(routed, OUTSIDE)
    assert PASSAGES[4] in str(inside)
    assert inside.metadata["selector_result"].ind == 1
    assert "Think step by step" in str(outside)
    selected = outside.metadata["selector_result"]
    assert (selected.ind, selected.retrieval["retrieve"]) == (0, False)
    assert selected.reason == selected.retrieval["reason"]
    assert SelectorResult.model_validate(selected.model_dump()).ind == 0


def test_a_selector_needs_both_choices(retriever: CAUSRetriever) -> None:
    """It says which, instead of an IndexError in the router; and a query that is not blank."""
    selector = ContextAwarenessSelector.from_retriever(retriever)
    with pytest.raises(ValueError, match=r"0 \(with context\) and 1 \(without\), got 1 choices"):
        selector.select(["context"], INSIDE)
    with pytest.raises(ValueError, match="the query is blank"):
        selector.select(["a", "b"], "  \n")
    with pytest.raises(ValueError, match="two positions >= 0, got 1 and 1"):
        ContextAwarenessSelector(retriever, selector.gate, context=1)


@pytest.mark.parametrize("ask", WAYS)
def test_an_embedding_of_the_caller_s_is_what_is_judged(engine: GatedQueryEngine, ask: Ask) -> None:
    """Or strings to embed, as a HyDE transform before the gate leaves them."""
    bundle = QueryBundle(INSIDE, embedding=embed(OUTSIDE))
    outside = ask(engine, OUTSIDE).metadata["retrieval"]["similarity"]
    assert engine.decide(bundle).decision.similarity == outside
    rewriting = Rewriting(llm=MockLLM())
    rewriting.text = PASSAGES[4]
    around = TransformQueryEngine(engine, rewriting)
    plain = ask(engine, PASSAGES[4]).metadata["retrieval"]
    assert ask(around, OUTSIDE).metadata["retrieval"]["similarity"] == plain["similarity"]


@pytest.mark.parametrize("ask", WAYS)
def test_no_answer_is_ever_empty_for_want_of_nodes(
    retriever: CAUSRetriever, engine: GatedQueryEngine, ask: Ask
) -> None:
    """Nor where a postprocessor drops them all, where LlamaIndex says "Empty Response"."""
    dropping = [SimilarityPostprocessor(similarity_cutoff=2.0)]
    inner = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=dropping)
    response = ask(GatedQueryEngine(inner, MockLLM(), engine.gate), INSIDE)
    assert "Think step by step" in str(response)
    assert response.metadata["retrieval"]["reason"].startswith("the retriever returned no passage")


def test_a_gate_is_fitted_on_the_nodes_of_an_index() -> None:
    """Which has no embedding model."""
    fusing = CAUSRetriever.from_index(VectorStoreIndex(nodes(), embed_model=Words()))
    engine = GatedQueryEngine.from_retriever(fusing, MockLLM(), embed_model=Words())
    assert not engine.decide(QueryBundle(OUTSIDE)).decision.retrieve
    assert engine.decide(QueryBundle(INSIDE)).decision.retrieve


def test_parts_of_another_kind_are_named_at_once(
    retriever: CAUSRetriever, engine: GatedQueryEngine
) -> None:
    """Not by the first question that opens the gate."""
    llm: Any = MockLLM()
    with pytest.raises(ValueError, match=r"query_engine must have retrieve and synthesize, .*got"):
        GatedQueryEngine(retriever, llm, engine.gate)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"gate must be a ContextGate, .*got None"):
        GatedQueryEngine(engine, llm, None)  # type: ignore[arg-type]
