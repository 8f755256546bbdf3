"""CAUSRetriever: options, queries, adding and deleting, bad input."""

from __future__ import annotations

import asyncio
import math
from contextvars import Context
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import (
    CallbackManager,
    CBEventType,
    EventPayload,
    LlamaDebugHandler,
)
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.tools import RetrieverTool

import llamaindex_posrag
from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.nodes import ExplainedNode
from shared_core import CAUS

from .checks import facts, ids
from .doubles import QUERY, TEXTS, CallbackLog, WordEmbedding, corpus, traced


class CountingEmbedding(WordEmbedding):
    """WordEmbedding that counts texts, and raises at a given one."""

    texts: list[str] = Field(default_factory=list)
    fails_at: str = "nothing"

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.fails_at in text:
            raise ConnectionError("the embedding service is gone")
        self.texts.append(text)
        return super()._get_text_embedding(text)


@pytest.fixture
def retriever() -> CAUSRetriever:
    return CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=5, psi="always")


def test_the_public_names_are_fixed() -> None:
    assert llamaindex_posrag.__all__ == [
        "AttentionPlacementPostprocessor",
        "CAUSPostprocessor",
        "CAUSRetriever",
        "ContextAwarenessSelector",
        "DirectQueryEngine",
        "ExplainedNode",
        "FusingRetriever",
        "GatedQueryEngine",
        "GatedWorkflow",
        "LlamaIndexModel",
        "NeighbourSpanPostprocessor",
        "PlacementPostprocessor",
        "RetrievalDecisionEvent",
        "TwoRoundQueryEngine",
        "load_gate",
    ]


def explanation(hit: NodeWithScore) -> dict[str, Any]:
    assert isinstance(hit, ExplainedNode)
    return hit.posrag


def test_both_legs_see_the_text_for_embedding() -> None:
    model = CountingEmbedding()
    node = TextNode(
        text="plain words",
        metadata={"seen": "visible", "hidden": "invisible"},
        excluded_embed_metadata_keys=["hidden"],
    )
    retriever = CAUSRetriever.from_nodes([node, TextNode(text="other")], model, alpha=0.0)
    assert model.texts[0] == node.get_content(MetadataMode.EMBED)
    by_visible, by_hidden = retriever.retrieve("visible"), retriever.retrieve("invisible")
    assert by_visible[0].node.node_id == node.node_id
    assert explanation(by_visible[0])["sparse"] > 0
    assert all(explanation(hit)["sparse"] == 0 for hit in by_hidden)


def test_a_node_with_an_embedding_keeps_it() -> None:
    model = CountingEmbedding()
    nodes = corpus()[:3]
    nodes[1].embedding = model.get_text_embedding("somewhere else entirely")
    model.texts.clear()
    retriever = CAUSRetriever.from_nodes(nodes, model, alpha=1.0)
    assert len(model.texts) == 2
    hit = retriever.retrieve("somewhere else entirely")[0]
    assert hit.node.node_id == "n1"
    assert explanation(hit)["dense"] == pytest.approx(1.0, abs=1e-5)
    assert nodes[1].embedding is not None
    assert hit.node.embedding is None


def test_a_bundle_brings_its_own_embedding(retriever: CAUSRetriever) -> None:
    dense_only = CAUSRetriever(
        retriever.index, MockEmbedding(embed_dim=64), caus=CAUS(k=5, alpha=1.0)
    )
    vector = WordEmbedding().get_query_embedding(TEXTS[7])
    assert ids(dense_only.retrieve(QueryBundle("x", embedding=vector)))[0] == "n7"


def test_a_bundle_brings_its_own_embedding_strings(retriever: CAUSRetriever) -> None:
    dense_only = CAUSRetriever(retriever.index, WordEmbedding(), caus=CAUS(k=5, alpha=1.0))
    bundle = QueryBundle("x", custom_embedding_strs=[TEXTS[4], TEXTS[4]])
    assert ids(dense_only.retrieve(bundle))[0] == "n4"
    assert ids(asyncio.run(dense_only.aretrieve(bundle)))[0] == "n4"


def test_a_retriever_tool_asks_the_question_itself(retriever: CAUSRetriever) -> None:
    tool = RetrieverTool.from_defaults(retriever)
    assert ids(tool.call(input=QUERY).raw_output) == ids(retriever.retrieve(QUERY))
    assert ids(tool.call(QUERY).raw_output) == ids(retriever.retrieve(QUERY))
    wrapped, plain = retriever.retrieve(f"\ninput is {QUERY}\n"), retriever.retrieve(QUERY)
    assert facts(wrapped) == facts(plain)
    assert facts(retriever.retrieve("input is a word")) != facts(retriever.retrieve("a word"))


def test_a_batch_gives_what_single_queries_give(retriever: CAUSRetriever) -> None:
    queries: list[Any] = [*TEXTS, "", QUERY, QueryBundle("x", embedding=[1.0] * 64)]
    with traced() as trace:
        batch = retriever.retrieve_batch(queries)
    assert [ids(found) for found in batch] == [ids(retriever.retrieve(q)) for q in queries]
    for found, query in zip(batch, queries, strict=True):
        single = retriever.retrieve(query)
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in single])
    assert len(trace.of(RetrievalStartEvent)) == len(queries)
    assert len(trace.of(RetrievalEndEvent)) == len(queries)
    assert not trace.spans.open_spans
    assert retriever.retrieve_batch([]) == []
    empty = CAUSRetriever.from_nodes([], WordEmbedding())
    assert empty.retrieve_batch(["a", "b"]) == [[], []]


def test_both_ways_to_retrieve_show_as_the_same_spans(retriever: CAUSRetriever) -> None:
    """As in LlamaIndex's own retrievers."""
    fusing = CAUSRetriever.from_index(
        VectorStoreIndex(corpus(), embed_model=WordEmbedding()), higher_is_better=True
    )
    for each in (retriever, fusing):
        spans = []
        for retrieve in (
            each.retrieve,
            lambda query, each=each: asyncio.run(each.aretrieve(query)),
        ):
            with traced() as trace:
                retrieve(QUERY)
            spans.append({span.id_.partition("-")[0] for span in trace.spans.completed_spans})
        name = type(each).__name__
        assert {f"{name}.retrieve", f"{name}._retrieve"} <= spans[0]
        assert {f"{name}.aretrieve", f"{name}._aretrieve"} <= spans[1]


def test_a_batch_is_announced_to_callbacks_as_single_queries_are() -> None:
    """With the query and the nodes of each, one after another."""
    queries = [*TEXTS[:3], QUERY]

    def announced(*, batch: bool) -> list[Any]:
        log = LlamaDebugHandler(print_trace_on_end=False)
        retriever = CAUSRetriever.from_nodes(
            corpus(), WordEmbedding(), callback_manager=CallbackManager([log])
        )
        log.flush_event_logs()
        if batch:
            retriever.retrieve_batch(queries)
        else:
            for query in queries:
                retriever.retrieve(query)
        started, ended = zip(*log.get_event_pairs(CBEventType.RETRIEVE), strict=True)
        asked = [event.payload[EventPayload.QUERY_STR] for event in started]
        return [asked, [ids(event.payload[EventPayload.NODES]) for event in ended]]

    assert announced(batch=True) == announced(batch=False)
    assert announced(batch=True)[0] == queries


@pytest.mark.parametrize("query", ["abc", QueryBundle("abc")])
def test_one_query_is_no_batch(retriever: CAUSRetriever, query: Any) -> None:
    """The letters of a text would be queries."""
    with pytest.raises(ValueError, match=r"queries must be a list, got .*abc"):
        retriever.retrieve_batch(query)


def test_an_index_node_leads_to_its_object(retriever: CAUSRetriever) -> None:
    target = TextNode(id_="behind", text="What stands behind the sign.")
    sign = IndexNode(id_="sign", text="unmistakable signpost", index_id="s", obj=target)
    retriever.add_nodes([sign])
    assert "behind" in ids(retriever.retrieve("unmistakable signpost"))
    assert ids(retriever.retrieve_batch(["unmistakable signpost"])[0]) == ids(
        retriever.retrieve("unmistakable signpost")
    )


def test_objects_callbacks_and_what_is_said_are_the_retrievers_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Built from nodes, or loaded."""
    sign = IndexNode(id_="sign", text="unmistakable signpost", index_id="s")
    log = CallbackLog()
    options: dict[str, Any] = {
        "callback_manager": CallbackManager([log]),
        "object_map": {"s": TextNode(id_="behind", text="What stands behind the sign.")},
        "verbose": True,
    }
    built = CAUSRetriever.from_nodes([sign], WordEmbedding(), **options)
    built.save(tmp_path / "index")
    for retriever in (built, CAUSRetriever.load(tmp_path / "index", WordEmbedding(), **options)):
        assert ids(retriever.retrieve("signpost")) == ["behind"]
        assert "Retrieval entering s" in capsys.readouterr().out
    assert log.started.count(CBEventType.RETRIEVE) == 2
    assert {*log.started} == {CBEventType.RETRIEVE, CBEventType.EMBEDDING}


def test_retrievers_over_one_index_report_to_their_own_callbacks() -> None:
    """Other options, or the callbacks of a request; the user's model stays as it is."""
    logs = [CallbackLog(), CallbackLog()]
    model = WordEmbedding(callback_manager=CallbackManager([]))
    managers = [model.callback_manager, *(CallbackManager([log]) for log in logs)]
    first = CAUSRetriever.from_nodes(corpus(), model, callback_manager=managers[1])
    second = CAUSRetriever(first.index, first.embed_model, callback_manager=managers[2])
    silent = CAUSRetriever(first.index, first.embed_model, caus=replace(first.caus, alpha=0.5))
    both = [CBEventType.RETRIEVE, CBEventType.EMBEDDING]
    logs[0].started.clear()  # the embedding of the nodes
    first.retrieve(QUERY)
    assert (logs[0].started, logs[1].started) == (both, [])
    second.retrieve(QUERY)
    assert (logs[0].started, logs[1].started) == (both, both)
    silent.retrieve(QUERY)
    assert (logs[0].started, logs[1].started) == (both, both)
    assert model.callback_manager is managers[0]


def test_adding_and_deleting(retriever: CAUSRetriever) -> None:
    before = facts(retriever.retrieve(QUERY))
    extra = TextNode(
        id_="extra",
        text=QUERY,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a source")},
    )
    assert retriever.add_nodes([extra]) == ["extra"]
    assert ids(retriever.retrieve(QUERY))[0] == "extra"
    assert retriever.delete("a source") == ["extra"]
    assert facts(retriever.retrieve(QUERY)) == before
    assert retriever.delete_nodes(["n0", "no such id"]) == ["n0"]
    assert "n0" not in ids(retriever.retrieve(QUERY))
    assert sorted(retriever.delete("d0")) == ["n10", "n2", "n4", "n6", "n8"]
    assert len(retriever.index) == 6
    assert retriever.delete("no such source") == []
    assert retriever.add_nodes([]) == []


@pytest.mark.parametrize("no_id", [None, ["d0"], 0])
def test_deleting_by_what_is_no_id_is_refused(retriever: CAUSRetriever, no_id: Any) -> None:
    """None is what `ref_doc_id` of a node without a source is, and would delete all of these."""
    retriever.add_nodes([TextNode(id_="without a source", text="x")])
    with pytest.raises(ValueError, match="id of one source document"):
        retriever.delete(no_id)
    assert len(retriever.index) == 13


def test_it_answers_end_to_end_without_empty_response(retriever: CAUSRetriever) -> None:
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert TEXTS[0] in str(engine.query(QUERY))
    assert TEXTS[0] in str(asyncio.run(engine.aquery(QUERY)))


# What is refused, and what is left behind then.


@pytest.mark.parametrize(
    "embedding",
    [[math.nan] * 64, [math.inf] + [0.0] * 63, [1.0] * 63, []],
    ids=["nan", "inf", "dimension", "empty"],
)
def test_bad_embeddings_leave_nothing_half_added(
    retriever: CAUSRetriever, embedding: list[float]
) -> None:
    before = facts(retriever.retrieve(QUERY))
    good = TextNode(id_="good", text=QUERY)
    with pytest.raises(ValueError):
        retriever.add_nodes([good, TextNode(id_="bad", text="bad", embedding=embedding)])
    with pytest.raises(ValueError):
        retriever.retrieve(QueryBundle(QUERY, embedding=embedding))
    assert facts(retriever.retrieve(QUERY)) == before


def test_a_model_that_loses_a_text_is_refused() -> None:
    class Losing(WordEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return super()._get_text_embeddings(texts)[1:]

    with pytest.raises(ValueError, match="too few vectors"):
        CAUSRetriever.from_nodes(corpus(), Losing(embed_batch_size=100))


@pytest.mark.parametrize("asked", ["retriever", "from_index", "engine"])
def test_the_events_of_past_queries_are_not_kept(asked: str) -> None:
    """A callback manager forgets them when a trace begins, so the model's has to see one begin."""
    model = WordEmbedding(callback_manager=CallbackManager([]))
    nodes = [TextNode(id_=str(at), text=text) for at, text in enumerate(TEXTS)]
    if asked == "from_index":
        index = VectorStoreIndex(nodes, embed_model=model)
        retrieve = CAUSRetriever.from_index(index, higher_is_better=True).retrieve
        manager = model.callback_manager
    else:
        retriever = CAUSRetriever.from_nodes(nodes, model)
        retrieve, manager = retriever.retrieve, retriever.embed_model.callback_manager
        if asked == "engine":
            retrieve = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query
    kept = []
    for _ in range(5):
        Context().run(retrieve, QUERY)  # in this one an earlier test may have left a trace open
        kept.append(sum(map(len, manager.trace_map.values())))
    assert kept == kept[:1] * 5
