"""The hosts of the gate: a query engine, a selector under both routers, and a workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

import numpy as np
import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_selector import SelectorResult
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.retrievers import RouterRetriever, TransformRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from llamaindex_posrag import (
    CAUSRetriever,
    ContextAwarenessSelector,
    DirectQueryEngine,
    GatedQueryEngine,
    GatedWorkflow,
    RetrievalDecisionEvent,
)
from tests.adapters.drivers import LlamaIndexModel
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed
from tests.llamaindex.doubles import CallbackLog, traced

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
def test_a_trace_shows_the_decision(retriever: CAUSRetriever, ask: Ask) -> None:
    """As an event; every span is closed, and the callback handlers hear of the query."""
    log = CallbackLog()
    engine = GatedQueryEngine.from_retriever(
        retriever, MockLLM(), callback_manager=CallbackManager([log])
    )
    with traced() as trace:
        response = ask(engine, f"\ninput is {OUTSIDE}\n")
    (event,) = trace.of(RetrievalDecisionEvent)
    assert event.query == OUTSIDE
    assert event.decision == response.metadata["retrieval"]
    assert event.model_dump(mode="json")["class_name"] == "RetrievalDecisionEvent"
    assert not trace.spans.open_spans
    assert log.started[:2] == [CBEventType.QUERY, CBEventType.SYNTHESIZE]
    assert sorted(log.started) == sorted(log.ended)


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


@pytest.mark.parametrize("question", [INSIDE, OUTSIDE])
def test_the_callbacks_of_the_settings_see_one_trace(
    retriever: CAUSRetriever, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the parts of an engine do belongs to its query, as in LlamaIndex's engines."""
    monkeypatch.setattr(Settings, "_callback_manager", manager := CallbackManager([]))
    llm = MockLLM()
    shared = CAUSRetriever(retriever.index, retriever.embed_model)
    for engine in (GatedQueryEngine.from_retriever(shared, llm), DirectQueryEngine(llm)):
        Context().run(engine.query, question)
        (query,) = manager.trace_map["root"]
        assert manager.trace_map[query]


@pytest.mark.parametrize("ask", WAYS)
def test_a_router_asks_the_engine_that_the_gate_selects(retriever: CAUSRetriever, ask: Ask) -> None:
    """And its response carries the decision."""
    llm = MockLLM()
    engines = [RetrieverQueryEngine.from_args(retriever, llm=llm), DirectQueryEngine(llm)]
    tools = [
        QueryEngineTool.from_defaults(engine, name=name, description=name)
        for engine, name in zip(engines, ("context", "direct"), strict=True)
    ]
    routed = RouterQueryEngine(ContextAwarenessSelector.from_retriever(retriever), tools, llm=llm)
    inside, outside = ask(routed, INSIDE), ask(routed, OUTSIDE)
    assert PASSAGES[4] in str(inside)
    assert inside.metadata["selector_result"].ind == 0
    assert "Think step by step" in str(outside)
    selected = outside.metadata["selector_result"]
    assert (selected.ind, selected.retrieval["retrieve"]) == (1, False)
    assert selected.reason == selected.retrieval["reason"]
    assert SelectorResult.model_validate(selected.model_dump()).ind == 1


async def test_a_router_of_retrievers_asks_the_corpus_or_the_other(
    retriever: CAUSRetriever,
) -> None:
    """The positions of the two choices are the caller's."""
    other = CAUSRetriever.from_nodes([TextNode(id_="else", text="something else")], Words())
    selector = ContextAwarenessSelector.from_retriever(retriever, context=1, direct=0)
    tools = [
        RetrieverTool.from_defaults(each, name=name, description=name)
        for each, name in ((other, "else"), (retriever, "corpus"))
    ]
    routed = RouterRetriever(selector, tools, llm=MockLLM())
    assert routed.retrieve(INSIDE)[0].node_id == "p4"
    assert [each.node_id for each in await routed.aretrieve(OUTSIDE)] == ["else"]


def test_a_selector_needs_both_choices(retriever: CAUSRetriever) -> None:
    """It says which, instead of an IndexError in the router; and a query that is not blank."""
    selector = ContextAwarenessSelector.from_retriever(retriever)
    with pytest.raises(ValueError, match=r"0 \(with context\) and 1 \(without\), got 1 choices"):
        selector.select(["context"], INSIDE)
    with pytest.raises(ValueError, match="the query is blank"):
        selector.select(["a", "b"], "  \n")
    for context in (1, -1):
        with pytest.raises(ValueError, match=f"two positions >= 0, got {context} and 1"):
            ContextAwarenessSelector(retriever, selector.gate, context=context)
    assert selector.get_prompts() == {}


async def test_a_workflow_answers_as_its_engine(engine: GatedQueryEngine) -> None:
    """With and without context."""
    for query in (INSIDE, QueryBundle(OUTSIDE)):
        result = await GatedWorkflow(engine).run(query=query)
        expected = await engine.aquery(query)
        assert str(result) == str(expected)
        assert result.metadata == expected.metadata


@pytest.mark.parametrize("asked", [INSIDE, OUTSIDE])
async def test_additional_nodes_are_passed_on_in_either_case(
    engine: GatedQueryEngine, asked: str
) -> None:
    """With context they come after the nodes that are answered from, without it alone."""
    query, extra = QueryBundle(asked), NodeWithScore(node=TextNode(id_="extra", text="more"))
    found = engine.retrieve(query)
    assert await engine.aretrieve(query) == found
    assert bool(found) == (asked == INSIDE)
    for response in (
        engine.synthesize(query, found, [extra]),
        await engine.asynthesize(query, found, [extra]),
    ):
        ids = [each.node_id for each in response.source_nodes]
        assert ids == [*(each.node_id for each in found), "extra"]
    outer = GatedQueryEngine(engine, MockLLM(), engine.gate)
    assert str(outer.query(asked)) == str(engine.query(asked)), "a gated engine can be gated"


class HyDE(HyDEQueryTransform):
    """Has a passage embedded in place of the one that a model would write."""

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(query_bundle.query_str, custom_embedding_strs=[PASSAGES[4]])


@pytest.mark.parametrize("ask", WAYS)
def test_the_question_is_judged_not_what_is_embedded_for_it(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """The cosines in the nodes are of the text that was embedded."""
    rewriting = TransformRetriever(retriever, HyDE(llm=MockLLM()))
    texts = [node.get_content() for node in rewriting.retrieve(OUTSIDE)]
    own = max(float(np.dot(embed(text), embed(OUTSIDE))) for text in texts)
    gated = GatedQueryEngine.from_retriever(rewriting, MockLLM(), nodes(), embed_model=Words())
    told = ask(gated, OUTSIDE).metadata["retrieval"]
    assert told["similarity"] == pytest.approx(own, abs=1e-6)
    assert not told["retrieve"]


@pytest.mark.parametrize("ask", WAYS)
def test_an_embedding_of_the_caller_s_is_what_is_judged(engine: GatedQueryEngine, ask: Ask) -> None:
    """Or strings to embed, as a HyDE transform before the gate leaves them."""
    bundle = QueryBundle(INSIDE, embedding=embed(OUTSIDE))
    outside = ask(engine, OUTSIDE).metadata["retrieval"]["similarity"]
    assert engine.decide(bundle).decision.similarity == outside
    around = TransformQueryEngine(engine, HyDE(llm=MockLLM()))
    plain = ask(engine, PASSAGES[4]).metadata["retrieval"]
    assert ask(around, OUTSIDE).metadata["retrieval"]["similarity"] == plain["similarity"]


@pytest.mark.parametrize("ask", WAYS)
def test_no_answer_is_ever_empty_for_want_of_nodes(
    retriever: CAUSRetriever, engine: GatedQueryEngine, ask: Ask
) -> None:
    """Nor where a postprocessor drops them all."""
    inner = RetrieverQueryEngine.from_args(
        retriever,
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=2.0)],
    )
    response = ask(GatedQueryEngine(inner, MockLLM(), engine.gate), INSIDE)
    assert str(ask(inner, INSIDE)) == "Empty Response", "what it would have been"
    assert "Think step by step" in str(response)
    assert response.metadata["retrieval"]["reason"].startswith("the retriever returned no passage")


def test_a_gate_is_fitted_on_the_nodes_of_an_index() -> None:
    """Which has no embedding model."""
    fusing = CAUSRetriever.from_index(
        VectorStoreIndex(nodes(), embed_model=Words()), higher_is_better=True
    )
    engine = GatedQueryEngine.from_retriever(fusing, MockLLM(), embed_model=Words())
    given = GatedQueryEngine.from_retriever(fusing, MockLLM(), nodes(), embed_model=Words())
    assert engine.gate.candidates.decide(0.5) == given.gate.candidates.decide(0.5)
    assert not engine.decide(QueryBundle(OUTSIDE)).decision.retrieve
    with pytest.raises(ValueError, match="CAUSRetriever has no embedding model: give embed_mo"):
        GatedQueryEngine.from_retriever(fusing, MockLLM())


def test_parts_of_another_kind_are_named_at_once(
    retriever: CAUSRetriever, engine: GatedQueryEngine
) -> None:
    """Not by the first question that opens the gate."""
    llm: Any = MockLLM()
    with pytest.raises(ValueError, match=r"query_engine must have retrieve and synthesize, .*got"):
        GatedQueryEngine(retriever, llm, engine.gate)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"gate must be a ContextGate, .*got None"):
        GatedQueryEngine(engine, llm, None)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"using\(\) needs a RetrieverQueryEngine over a CAUS.*got"
    ):
        GatedQueryEngine(engine, llm, engine.gate).using(k=1)
