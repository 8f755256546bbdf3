"""The hosts of the gate: a query engine, a selector under both routers, and a workflow."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import SelectorResult
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever, TransformRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool

from llamaindex_posrag import (
    CAUSRetriever,
    ContextAwarenessSelector,
    DirectQueryEngine,
    GatedQueryEngine,
    GatedWorkflow,
    RetrievalDecisionEvent,
    load_gate,
)
from llamaindex_posrag.nodes import explanation
from shared_core import CAUS
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import ContextGate, GatedPrompts
from shared_core.gating.fit import fit_index
from shared_core.neighbour_spans import NeighbourSpans
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed
from tests.langchain.openai_server import OpenAIServer, Request
from tests.llamaindex.doubles import CallbackLog, traced
from tests.llamaindex.openai_llm import OpenAIChat

Ask = Callable[[BaseQueryEngine, str], Any]


class Words(BaseEmbedding):
    """Counts words; `salt` makes it another model, `broken` one that fails quietly."""

    salt: str = ""
    broken: bool = False
    embedded: list[str] = Field(default_factory=list)

    def _get_text_embedding(self, text: str) -> list[float]:
        self.embedded.append(text)
        return embed(" ".join(word + self.salt for word in text.split()))

    def _get_query_embedding(self, query: str) -> list[float]:
        vector = self._get_text_embedding(query)
        return [math.nan for _ in vector] if self.broken else vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


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


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("ask", WAYS)
def test_both_kinds_of_question_are_answered(
    retriever: CAUSRetriever, ask: Ask, streaming: bool
) -> None:
    """The mock repeats its prompt, so the answer shows which one it got."""
    engine = GatedQueryEngine.from_retriever(retriever, MockLLM(), streaming=streaming)
    inside, outside = ask(engine, INSIDE), ask(engine, OUTSIDE)
    if streaming and ask is queried:
        assert isinstance(inside, StreamingResponse)
        assert isinstance(outside, StreamingResponse)
    assert PASSAGES[4] in str(inside)
    assert inside.metadata["retrieval"]["retrieve"] is True
    assert inside.source_nodes[0].node_id == "p4"
    why = explanation(inside.source_nodes[0])
    assert why["retrieval"] == inside.metadata["retrieval"]
    assert "dense_rank" in why, "what explained the node before is still there"
    assert "Think step by step" in str(outside)
    assert OUTSIDE in str(outside)
    assert outside.source_nodes == []
    assert outside.metadata["retrieval"]["retrieve"] is False
    assert "answer without context" in outside.metadata["retrieval"]["reason"]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("ask", WAYS)
def test_a_server_answers_both(
    retriever: CAUSRetriever, ask: Ask, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over OpenAI's protocol, on a real connection."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def answer(request: Request) -> str:
        return "from what it knows" if "step by step" in request.prompt else "from the context"

    with OpenAIServer(answer) as server:
        llm = OpenAIChat(base_url=server.url)
        engine = GatedQueryEngine.from_retriever(retriever, llm, streaming=streaming)
        assert str(ask(engine, INSIDE)) == "from the context"
        assert str(ask(engine, OUTSIDE)) == "from what it knows"
        assert {request.payload.get("stream", False) for request in server.requests} == {streaming}


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
    assert event.model_dump(mode="json")["decision"]["retrieve"] is False
    assert not trace.spans.open_spans
    assert CBEventType.QUERY in log.started
    assert sorted(log.started) == sorted(log.ended)


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


def router(selector: ContextAwarenessSelector, retriever: CAUSRetriever) -> RouterQueryEngine:
    llm = MockLLM()
    engines = [RetrieverQueryEngine.from_args(retriever, llm=llm), DirectQueryEngine(llm)]
    tools = [
        QueryEngineTool.from_defaults(engine, name=name, description=name)
        for engine, name in zip(engines, ("context", "direct"), strict=True)
    ]
    return RouterQueryEngine(selector, tools, llm=llm)


@pytest.mark.parametrize("ask", WAYS)
def test_a_router_asks_the_engine_that_the_gate_selects(retriever: CAUSRetriever, ask: Ask) -> None:
    """And its response carries the decision."""
    routed = router(ContextAwarenessSelector.from_retriever(retriever), retriever)
    inside, outside = ask(routed, INSIDE), ask(routed, OUTSIDE)
    assert PASSAGES[4] in str(inside)
    assert inside.metadata["selector_result"].ind == 0
    assert "Think step by step" in str(outside)
    selected = outside.metadata["selector_result"]
    assert (selected.ind, selected.retrieval["retrieve"]) == (1, False)
    assert selected.reason == selected.retrieval["reason"]
    assert SelectorResult.model_validate(selected.model_dump()).ind == 1


@pytest.mark.parametrize("native", [False, True])
def test_a_router_of_retrievers_asks_the_corpus_or_the_other(
    retriever: CAUSRetriever, native: bool
) -> None:
    """The positions of the two choices are the caller's."""
    other = CAUSRetriever.from_nodes([TextNode(id_="else", text="something else")], Words())
    selector = ContextAwarenessSelector.from_retriever(retriever, context=1, direct=0)
    tools = [
        RetrieverTool.from_defaults(each, name=name, description=name)
        for each, name in ((other, "else"), (retriever, "corpus"))
    ]
    routed = RouterRetriever(selector, tools, llm=MockLLM())

    def found(query: str) -> list[NodeWithScore]:
        return asyncio.run(routed.aretrieve(query)) if native else routed.retrieve(query)

    assert found(INSIDE)[0].node_id == "p4"
    assert [each.node_id for each in found(OUTSIDE)] == ["else"]


def test_a_selector_needs_both_choices(retriever: CAUSRetriever) -> None:
    """It says which, instead of an IndexError in the router."""
    selector = ContextAwarenessSelector.from_retriever(retriever)
    with pytest.raises(ValueError, match=r"0 \(with context\) and 1 \(without\), got 1 choices"):
        selector.select(["context"], INSIDE)
    with pytest.raises(ValueError, match="two positions >= 0, got 1 and 1"):
        ContextAwarenessSelector(retriever, selector.gate, context=1)
    assert selector.get_prompts() == {}


async def test_a_workflow_takes_one_step_or_the_other(engine: GatedQueryEngine) -> None:
    """Its result is the engine's own."""

    class Noting(GatedWorkflow):
        async def _answer(self, ev: Any) -> Any:
            taken.append(type(ev).__name__)
            return await super()._answer(ev)

    taken: list[str] = []
    for query in (INSIDE, QueryBundle(OUTSIDE)):
        result = await Noting(engine).run(query=query)
        expected = await engine.aquery(query)
        assert str(result) == str(expected)
        assert result.metadata == expected.metadata
    assert taken == ["WithContext", "WithoutContext"]


@pytest.mark.parametrize("ask", WAYS)
def test_a_tool_s_wrapping_is_taken_off(engine: GatedQueryEngine, ask: Ask) -> None:
    """Before the decision, the search and both prompts."""
    for query in (INSIDE, OUTSIDE):
        wrapped, plain = ask(engine, f"\ninput is {query}\n"), ask(engine, query)
        assert str(wrapped) == str(plain)
        assert wrapped.metadata == plain.metadata


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("asked", [INSIDE, OUTSIDE])
async def test_additional_nodes_are_passed_on_in_either_case(
    retriever: CAUSRetriever, asked: str, streaming: bool
) -> None:
    """With context they come after the nodes that are answered from, without it alone."""
    engine = GatedQueryEngine.from_retriever(retriever, MockLLM(), streaming=streaming)
    query, extra = QueryBundle(asked), NodeWithScore(node=TextNode(id_="extra", text="more"))
    found = engine.retrieve(query)
    assert bool(found) == (asked == INSIDE)
    for response in (
        engine.synthesize(query, found, [extra]),
        await engine.asynthesize(query, found, [extra]),
    ):
        assert [each.node_id for each in response.source_nodes] == [
            *(each.node_id for each in found),
            "extra",
        ]
    assert engine.synthesize(query, found).source_nodes == found


def test_the_nearest_node_counts_though_it_is_not_among_the_best() -> None:
    """The words alone rank here, and the one node they find is not the nearest."""
    query = "a starter for honey: honey, honey and flour"
    retriever = CAUSRetriever.from_nodes(nodes(), Words(), k=1, alpha=0.0)
    cosines = np.array([embed(text) for text in PASSAGES]) @ embed(query)
    engine = GatedQueryEngine.from_retriever(retriever, MockLLM(), policy="minimum", threshold=-1.0)
    decision, (node,) = engine.decide(QueryBundle(query))
    assert node.node_id != IDS[int(cosines.argmax())], "or this test shows nothing"
    assert decision.similarity == pytest.approx(cosines.max())


@pytest.mark.parametrize("ask", WAYS)
def test_any_other_retriever_has_its_finds_embedded(engine: GatedQueryEngine, ask: Ask) -> None:
    """And comes to the same decision; without a model it says what is missing."""
    index = VectorStoreIndex(nodes(), embed_model=Words())
    retriever = index.as_retriever(similarity_top_k=3)
    gated = GatedQueryEngine.from_retriever(retriever, MockLLM(), nodes(), embed_model=Words())
    for query in (INSIDE, OUTSIDE):
        one, two = (ask(each, query).metadata["retrieval"] for each in (engine, gated))
        assert two["retrieve"] == one["retrieve"]
        assert two["similarity"] == pytest.approx(one["similarity"], abs=1e-6)
    bare = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    with pytest.raises(
        ValueError, match="the retriever returns no cosines of the query: give embed"
    ):
        ask(GatedQueryEngine(bare, MockLLM(), engine.gate), INSIDE)
    with pytest.raises(ValueError, match="has no embedding model: give embed_model="):
        GatedQueryEngine.from_retriever(retriever, MockLLM())
    with pytest.raises(ValueError, match="does not expose its nodes: give nodes="):
        GatedQueryEngine.from_retriever(retriever, MockLLM(), embed_model=Words())


class Fusion(QueryFusionRetriever):
    """Asks the question, and others in place of those that a model would write."""

    def _get_queries(self, original_query: str) -> list[QueryBundle]:
        return [QueryBundle(INSIDE), QueryBundle(PASSAGES[4])]

    async def _aget_queries(self, original_query: str) -> list[QueryBundle]:
        return self._get_queries(original_query)


class HyDE(HyDEQueryTransform):
    """Has a passage embedded in place of the one that a model would write."""

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(query_bundle.query_str, custom_embedding_strs=[PASSAGES[4]])


class Vector(HyDEQueryTransform):
    """Has another vector searched than that of the question."""

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(query_bundle.query_str, embedding=embed(PASSAGES[4]))


class Rewriting(HyDEQueryTransform):
    """Searches for something else altogether."""

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(INSIDE)


def fusion(retriever: BaseRetriever, queries: int) -> BaseRetriever:
    return Fusion([retriever], llm=MockLLM(), num_queries=queries, use_async=False)


REWRITING: dict[str, Callable[[BaseRetriever], BaseRetriever]] = {
    "fusion": lambda retriever: fusion(retriever, 3),
    "hyde": lambda retriever: TransformRetriever(retriever, HyDE(llm=MockLLM())),
    "vector": lambda retriever: TransformRetriever(retriever, Vector(llm=MockLLM())),
    "rewriting": lambda retriever: TransformRetriever(retriever, Rewriting(llm=MockLLM())),
}


@pytest.mark.parametrize("wrap", REWRITING.values(), ids=REWRITING)
@pytest.mark.parametrize("ask", WAYS)
def test_the_question_is_judged_not_what_it_was_rewritten_to(
    retriever: CAUSRetriever, wrap: Callable[[BaseRetriever], BaseRetriever], ask: Ask
) -> None:
    """The cosines in the nodes are of the text that was embedded."""
    rewriting = wrap(retriever)
    texts = [node.get_content() for node in rewriting.retrieve(OUTSIDE)]
    own = max(float(np.dot(embed(text), embed(OUTSIDE))) for text in texts)
    gated = GatedQueryEngine.from_retriever(rewriting, MockLLM(), nodes(), embed_model=Words())
    told = ask(gated, OUTSIDE).metadata["retrieval"]
    assert told["similarity"] == pytest.approx(own, abs=1e-6)
    assert not told["retrieve"]
    selector = ContextAwarenessSelector(rewriting, gated.gate, embed_model=Words())
    assert selector.select(["context", "direct"], OUTSIDE).ind == 1
    bare = RetrieverQueryEngine.from_args(rewriting, llm=MockLLM())
    with pytest.raises(
        ValueError, match="the retriever returns no cosines of the query: give embed"
    ):
        ask(GatedQueryEngine(bare, MockLLM(), gated.gate), OUTSIDE)


@pytest.mark.parametrize("wrap", [lambda retriever: retriever, lambda r: fusion(r, 1)])
@pytest.mark.parametrize("ask", WAYS)
def test_nothing_is_embedded_again_where_the_question_was_searched(
    retriever: CAUSRetriever, wrap: Callable[[BaseRetriever], BaseRetriever], ask: Ask
) -> None:
    """By the retriever itself or one around it; wrapped by a tool, or transformed by the gate."""
    model = retriever.embed_model
    assert isinstance(model, Words)
    for transform in (str, str.upper):
        gated = GatedQueryEngine.from_retriever(
            wrap(retriever), MockLLM(), nodes(), embed_model=model, transform=transform
        )
        for query in (INSIDE, f"\ninput is  {INSIDE} \n"):
            model.embedded.clear()
            assert ask(gated, query).metadata["retrieval"]["retrieve"] is True
            assert model.embedded == [transform(INSIDE)]


@pytest.mark.parametrize("ask", WAYS)
def test_embedding_strings_of_the_caller_s_are_what_is_judged(
    engine: GatedQueryEngine, ask: Ask
) -> None:
    """As a HyDE transform before the gate leaves them; they go through to the search."""
    around = TransformQueryEngine(engine, HyDE(llm=MockLLM()))
    plain = ask(engine, PASSAGES[4]).metadata["retrieval"]
    assert ask(around, OUTSIDE).metadata["retrieval"]["similarity"] == plain["similarity"]


@pytest.mark.parametrize("ask", WAYS)
def test_no_answer_is_ever_empty_for_want_of_nodes(
    retriever: CAUSRetriever, engine: GatedQueryEngine, ask: Ask
) -> None:
    """Nor where a postprocessor drops them all, nor over an index that was emptied."""
    strict = RetrieverQueryEngine.from_args(
        retriever,
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=2.0)],
    )
    empty = RetrieverQueryEngine.from_args(CAUSRetriever.from_nodes([], Words()), llm=MockLLM())
    for inner in (strict, empty):
        response = ask(GatedQueryEngine(inner, MockLLM(), engine.gate), INSIDE)
        assert str(ask(inner, INSIDE)) == "Empty Response", "what it would have been"
        assert "Think step by step" in str(response)
        assert response.metadata["retrieval"]["reason"].startswith("there is no passage")


def test_a_gated_engine_can_be_gated(engine: GatedQueryEngine) -> None:
    """It retrieves and synthesises like the engine in it."""
    outer = GatedQueryEngine(engine, MockLLM(), engine.gate)
    for query in (INSIDE, OUTSIDE):
        assert str(outer.query(query)) == str(engine.query(query))
    assert asyncio.run(engine.aretrieve(QueryBundle(INSIDE)))[0].node_id == "p4"


@pytest.mark.parametrize("ask", WAYS)
def test_a_transform_changes_what_is_searched_and_not_what_is_asked(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """An embedding of the query as it was asked is not used for another text."""
    engine = GatedQueryEngine.from_retriever(
        retriever,
        MockLLM(),
        transform=lambda query: INSIDE if query == "what about it?" else query,
        prompts=GatedPrompts(),
    )
    response = ask(engine, "what about it?")
    assert response.source_nodes[0].node_id == "p4"
    assert "what about it?" in str(response)
    assert INSIDE not in str(response)
    bundle = QueryBundle("what about it?", embedding=embed(OUTSIDE))
    assert engine.query(bundle).metadata == response.metadata
    assert bundle.embedding == embed(OUTSIDE), "the caller's own stays as it was"


def test_an_embedding_of_the_query_is_used(engine: GatedQueryEngine) -> None:
    """It need not be computed again, and decides."""
    bundle = QueryBundle(INSIDE, embedding=embed(OUTSIDE))
    similarity = engine.decide(bundle).decision.similarity
    assert similarity == engine.decide(QueryBundle(OUTSIDE)).decision.similarity


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize("query", ["", "  \n", "\ninput is  \n"])
def test_a_blank_query_is_refused(engine: GatedQueryEngine, ask: Ask, query: str) -> None:
    """By every host."""
    with pytest.raises(ValueError, match="the query is blank"):
        ask(engine, query)
    selector = ContextAwarenessSelector.from_retriever(CAUSRetriever.from_nodes(nodes(), Words()))
    with pytest.raises(ValueError, match="the query is blank"):
        selector.select(["a", "b"], query)


def test_another_embedding_model_is_refused(engine: GatedQueryEngine, tmp_path: Path) -> None:
    """By the fit's own fingerprint; the model of the fit is taken."""
    engine.gate.save(tmp_path / "gate")
    gate = load_gate(tmp_path / "gate", Words())
    assert isinstance(gate, ContextGate)
    assert gate.candidates.levels == engine.gate.candidates.levels
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        load_gate(tmp_path / "gate", Words(salt="x"))
    retriever = CAUSRetriever.from_nodes(nodes(), Words())
    with pytest.raises(EmbeddingMismatchError, match="not the one the index was built with"):
        GatedQueryEngine.from_retriever(retriever, MockLLM(), embed_model=Words(salt="x"))
    again = GatedQueryEngine.from_retriever(retriever, MockLLM(), embed_model=Words())
    assert again.gate.candidates.levels == gate.candidates.levels


@pytest.mark.parametrize(
    "fit", [{"coverage": True}, {"negatives": [OUTSIDE, "tides"] * 5}], ids=str
)
def test_a_gate_decides_after_loading_as_before(
    retriever: CAUSRetriever, fit: dict[str, Any], tmp_path: Path
) -> None:
    """With the words that were counted, and custom negatives."""
    engine = GatedQueryEngine.from_retriever(retriever, MockLLM(), **fit)
    engine.gate.save(tmp_path / "gate")
    inner = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    again = GatedQueryEngine(inner, MockLLM(), load_gate(tmp_path / "gate", Words()))
    for query in map(QueryBundle, (INSIDE, OUTSIDE, *PASSAGES)):
        assert again.decide(query).decision == engine.decide(query).decision
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        load_gate(tmp_path / "gate", Words(salt="x"))


def test_functions_that_are_not_saved_are_given_again(
    retriever: CAUSRetriever, tmp_path: Path
) -> None:
    """The error names them, and they are taken."""
    engine = GatedQueryEngine.from_retriever(
        retriever, MockLLM(), transform=str.lower, coverage=True, tokenizer=str.split
    )
    engine.gate.save(tmp_path / "gate")
    with pytest.raises(ValueError, match="give transform="):
        load_gate(tmp_path / "gate", Words(), tokenizer=str.split)
    with pytest.raises(ValueError, match="give it as tokenizer="):
        load_gate(tmp_path / "gate", Words(), transform=str.lower)
    gate = load_gate(tmp_path / "gate", Words(), transform=str.lower, tokenizer=str.split)
    assert gate.transform is str.lower
    assert gate.coverage is not None
    assert gate.coverage.tokenizer is str.split


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))]
)
def test_a_copy_of_an_engine_answers_as_it_does(
    engine: GatedQueryEngine, copied: Callable[[GatedQueryEngine], GatedQueryEngine]
) -> None:
    again = copied(engine)
    for query in (INSIDE, OUTSIDE):
        one, other = again.query(query), engine.query(query)
        assert (str(one), one.metadata) == (str(other), other.metadata)


def test_a_gate_is_fitted_on_the_nodes_of_a_fusing_retriever() -> None:
    """Which has no embedding model."""
    fusing = CAUSRetriever.from_index(
        VectorStoreIndex(nodes(), embed_model=Words()), higher_is_better=True
    )
    engine = GatedQueryEngine.from_retriever(fusing, MockLLM(), embed_model=Words())
    given = GatedQueryEngine.from_retriever(fusing, MockLLM(), nodes(), embed_model=Words())
    assert engine.gate.candidates.levels == given.gate.candidates.levels
    assert [engine.decide(QueryBundle(q)).decision.retrieve for q in (INSIDE, OUTSIDE)] == [
        True,
        False,
    ]
    with pytest.raises(
        ValueError, match="FusingRetriever has no embedding model: give embed_model="
    ):
        GatedQueryEngine.from_retriever(fusing, MockLLM())


@pytest.mark.parametrize("ask", WAYS)
def test_a_similarity_that_is_not_a_number_is_refused(engine: GatedQueryEngine, ask: Ask) -> None:
    """Rather than read as "outside"."""
    index = VectorStoreIndex(nodes(), embed_model=Words())
    bare = RetrieverQueryEngine.from_args(index.as_retriever(), llm=MockLLM())
    broken = GatedQueryEngine(bare, MockLLM(), engine.gate, embed_model=Words(broken=True))
    with pytest.raises(ValueError, match="the query: vector 0 holds a value that is not finite"):
        ask(broken, INSIDE)


def test_an_engine_over_spans_decides_by_its_seeds() -> None:
    """Expansion changes the texts, not what was nearest."""
    numbered = nodes()
    for number, node in enumerate(numbered):
        node.metadata = {"doc_id": "book", "chunk_id": number}
        node.excluded_embed_metadata_keys = [*node.metadata]
    plain = CAUSRetriever.from_nodes(numbered, Words(), k=3)
    caus = CAUS(k=3, expand=NeighbourSpans(window=1))
    spans = CAUSRetriever(plain.index, plain.embed_model, caus=caus)
    one, two = (GatedQueryEngine.from_retriever(each, MockLLM()) for each in (plain, spans))
    for query in (INSIDE, OUTSIDE):
        assert one.decide(QueryBundle(query)).decision == two.decide(QueryBundle(query)).decision
    texts = [node.get_content() for node in two.retrieve(QueryBundle(INSIDE))]
    assert any(PASSAGES[3] in text and PASSAGES[4] in text for text in texts)


def test_parts_of_another_kind_are_named_at_once(retriever: CAUSRetriever) -> None:
    """Not by the first question that opens the gate."""
    llm: Any = MockLLM()
    gate = fit_index(retriever.index, lambda texts: np.array([embed(text) for text in texts]))
    with pytest.raises(ValueError, match=r"query_engine must have retrieve and synthesize, .*got"):
        GatedQueryEngine(retriever, llm, gate)  # type: ignore[arg-type]
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm)
    with pytest.raises(ValueError, match="gate must be a ContextGate, got None"):
        GatedQueryEngine(engine, llm, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pseudo_queries": ["how to sort"]}, r"pseudo_queries\[0\] must be .* got 'how to sort'"),
        ({"pseudo_queries": {"a1": ["why?"]}}, r"pseudo_queries\[0\] must be .* got 'a1'"),
        ({"negatives": "Who is it?"}, "negatives must be a list"),
    ],
)
def test_questions_to_fit_a_gate_on_are_checked(
    retriever: CAUSRetriever, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        GatedQueryEngine.from_retriever(retriever, MockLLM(), **given)
