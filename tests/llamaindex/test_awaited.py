"""Awaited forms of adding, deleting and batches: results, events, errors and cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation.events.retrieval import (
    RetrievalEndEvent,
    RetrievalStartEvent,
)
from llama_index.core.schema import (
    IndexNode,
    NodeRelationship,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from llamaindex_posrag import CAUSRetriever, ExplainedNode, FusingRetriever
from shared_core import HybridIndex

from .checks import facts, ids
from .doubles import QUERY, TEXTS, CallbackLog, WordEmbedding, corpus, traced


class Awaited(WordEmbedding):
    """A model whose async form alone works; one text fails, and one never comes back."""

    _started: list[str] = PrivateAttr(default_factory=list)
    _ended: list[str] = PrivateAttr(default_factory=list)
    _most: int = PrivateAttr(default=0)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        self._started.append(text)
        self._most = max(self._most, len(self._started) - len(self._ended))
        try:
            await asyncio.sleep(0)
            if "fails" in text:
                raise ConnectionError("the embedding service is gone")
            if "hangs" in text:
                await asyncio.Event().wait()
            return self._vector(text)
        finally:
            self._ended.append(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self._aget_text_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        raise AssertionError("the event loop was held up")

    def _get_query_embedding(self, query: str) -> list[float]:
        raise AssertionError("the event loop was held up")


def built(model: WordEmbedding | None = None, **options: Any) -> CAUSRetriever:
    """Return a retriever over the corpus; the model is put in afterwards."""
    retriever = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=5, psi="always", **options)
    if model is not None:
        model.callback_manager = retriever.callback_manager
        retriever.embed_model = model
    return retriever


async def cancelled(work: Coroutine[Any, Any, Any], when: Callable[[], bool]) -> None:
    """Cancel a coroutine once `when` is true."""
    task = asyncio.create_task(work)
    while not (when() or task.done()):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def off_the_loop(monkeypatch: pytest.MonkeyPatch, name: str) -> list[bool]:
    """Record for each call of a method of the index whether it was made in another thread."""
    method, calls = getattr(HybridIndex, name), list[bool]()

    def recorded(*given: Any) -> Any:
        calls.append(threading.current_thread() is not threading.main_thread())
        return method(*given)

    monkeypatch.setattr(HybridIndex, name, recorded)
    return calls


# Adding.


def test_adding_awaited_is_adding(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the model's async form alone, and the index in a thread."""
    nodes = corpus()
    nodes[4].embedding = WordEmbedding().get_text_embedding("somewhere else entirely")
    expected = CAUSRetriever.from_nodes(nodes, WordEmbedding())
    retriever, calls = CAUSRetriever.from_nodes([], Awaited()), off_the_loop(monkeypatch, "add")
    assert asyncio.run(retriever.aadd_nodes(node for node in nodes)) == expected.index.ids
    assert calls == [True]
    for query in (*TEXTS, "somewhere else entirely"):
        assert facts(asyncio.run(retriever.aretrieve(query))) == facts(expected.retrieve(query))
    assert asyncio.run(retriever.aadd_nodes([TextNode(id_="n3", text="zebra")])) == ["n3"]
    assert len(retriever.index) == 12
    assert asyncio.run(retriever.aadd_nodes([])) == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("abc", "nodes must be a list, got the "),
        (["relu"], r"nodes\[0\] must be a BaseNode, got 'relu'"),
        ([TextNode(id_="x", text="a"), TextNode(id_="x", text="b")], "id 'x' occurs twice"),
        ([TextNode(text="a", metadata={"lock": threading.Lock()})], "'lock' holds a lock"),
    ],
)
def test_what_cannot_be_added_is_refused_before_it_is_embedded(nodes: Any, message: str) -> None:
    model = Awaited()
    with pytest.raises(ValueError, match=message):
        asyncio.run(CAUSRetriever.from_nodes([], model).aadd_nodes(nodes))
    assert model._started == []


def test_a_model_that_fails_leaves_the_index_as_it_was() -> None:
    class Losing(Awaited):
        async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return (await super()._aget_text_embeddings(texts))[1:]

    nodes = [TextNode(id_="x", text=QUERY), TextNode(id_="y", text="this one fails")]
    retriever = built(Awaited(embed_batch_size=1))
    before = retriever.index.ids
    with pytest.raises(ConnectionError):
        asyncio.run(retriever.aadd_nodes(nodes))
    retriever.embed_model = Losing()
    with pytest.raises(ValueError, match="too few vectors"):
        asyncio.run(retriever.aadd_nodes(nodes[:1]))
    bad = TextNode(id_="bad", text="bad", embedding=[1.0])
    with pytest.raises(ValueError, match="dimension"):
        asyncio.run(retriever.aadd_nodes([bad]))
    assert retriever.index.ids == before


def test_a_node_that_gets_an_embedding_meanwhile_keeps_what_it_had() -> None:
    """Two indices may be given the same nodes at once."""
    nodes = [TextNode(id_=id_, text=text) for id_, text in zip("xy", TEXTS, strict=False)]

    class Meddling(Awaited):
        async def _aget_text_embedding(self, text: str) -> list[float]:
            nodes[0].embedding = [0.0] * 64
            return await super()._aget_text_embedding(text)

    retriever = CAUSRetriever.from_nodes([], Meddling())
    asyncio.run(retriever.aadd_nodes(nodes))
    expected = CAUSRetriever.from_nodes(corpus()[:0], WordEmbedding())
    expected.add_nodes([TextNode(id_=node.node_id, text=node.text) for node in nodes])
    assert (retriever.index.embedded()[1] == expected.index.embedded()[1]).all()


def test_cancelled_while_it_embeds_nothing_is_added() -> None:
    retriever = built(model := Awaited())
    nodes = [TextNode(id_="x", text=QUERY), TextNode(id_="y", text="this one hangs")]
    asyncio.run(cancelled(retriever.aadd_nodes(nodes), lambda: len(model._started) == 2))
    assert len(retriever.index) == 12


def test_cancelled_while_it_adds_everything_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread cannot be stopped halfway; what it leaves is whole, and can be searched."""
    add, began, go_on = HybridIndex.add, threading.Event(), threading.Event()

    def slowly(*given: Any) -> list[str]:
        began.set()
        go_on.wait(60)
        return add(*given)

    async def run() -> None:
        try:
            await cancelled(retriever.aadd_nodes(nodes), began.is_set)
        finally:
            go_on.set()

    retriever = built(Awaited())
    nodes = [TextNode(id_=id_, text=f"{QUERY} {id_}") for id_ in "xy"]
    monkeypatch.setattr(HybridIndex, "add", slowly)
    asyncio.run(run())  # which waits for its threads
    assert len(retriever.index) == 14
    assert {"x", "y"} <= {*ids(asyncio.run(retriever.aretrieve(QUERY)))}


# Deleting.


def test_deleting_awaited_is_deleting(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever, calls = built(), off_the_loop(monkeypatch, "delete")
    assert asyncio.run(retriever.adelete_nodes(["n0", "no such id"])) == ["n0"]
    assert sorted(asyncio.run(retriever.adelete("d0"))) == ["n10", "n2", "n4", "n6", "n8"]
    assert asyncio.run(retriever.adelete("no such source")) == []
    assert calls == [True] * 3
    assert len(retriever.index) == 6


def test_deleting_awaited_refuses_what_deleting_refuses() -> None:
    retriever = built()
    for work, message in (
        (retriever.adelete_nodes("n0"), "ids must be a list"),
        (retriever.adelete(None), "id of one source document"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match=message):
            asyncio.run(work)
    assert len(retriever.index) == 12


def test_adding_deleting_and_searching_at_once_go_well_together() -> None:
    retriever = built(Awaited())

    async def one(at: int) -> None:
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"source {at}")}
        node = TextNode(id_=f"x{at}", text=f"{QUERY} {at}", relationships=source)
        assert await retriever.aadd_nodes([node]) == [f"x{at}"]
        assert len(await retriever.aretrieve(QUERY)) == 5
        assert await retriever.adelete(f"source {at}") == [f"x{at}"]

    async def run() -> None:
        await asyncio.gather(*map(one, range(20)))

    asyncio.run(run())
    assert retriever.index.ids == [node.node_id for node in corpus()]


# Many queries.

MANY: list[Any] = [
    *TEXTS,
    "",
    QUERY,
    f"\ninput is {QUERY}\n",
    QueryBundle("x", embedding=[1.0] * 64),
    QueryBundle("x", custom_embedding_strs=[TEXTS[4], TEXTS[5]]),
]


def test_a_batch_awaited_is_the_batch() -> None:
    expected = built().retrieve_batch(MANY)
    retriever = built(Awaited())
    with traced() as trace:
        batch = asyncio.run(retriever.aretrieve_batch(MANY))
    assert [facts(found) for found in batch] == [facts(found) for found in expected]
    explained = [hit for found in batch for hit in found if isinstance(hit, ExplainedNode)]
    assert [hit.posrag for hit in explained] == [
        hit.posrag for found in expected for hit in found if isinstance(hit, ExplainedNode)
    ]
    for kind in (RetrievalStartEvent, RetrievalEndEvent):
        asked = [event.str_or_query_bundle for event in trace.of(kind)]
        assert [bundle.query_str for bundle in asked] == [
            query if isinstance(query, str) else query.query_str for query in MANY
        ]
    assert not trace.spans.open_spans
    assert asyncio.run(retriever.aretrieve_batch([])) == []


def test_a_batch_over_an_empty_index_embeds_nothing() -> None:
    retriever = CAUSRetriever.from_nodes([], model := Awaited())
    assert asyncio.run(retriever.aretrieve_batch(["a", "b"])) == [[], []]
    assert model._started == []


def test_a_batch_awaited_is_announced_to_callbacks_as_the_batch_is() -> None:
    def announced(*, awaited: bool) -> list[Any]:
        log = LlamaDebugHandler(print_trace_on_end=False)
        retriever = built(callback_manager=CallbackManager([log]))
        log.flush_event_logs()
        if awaited:
            asyncio.run(retriever.aretrieve_batch([*TEXTS]))
        else:
            retriever.retrieve_batch([*TEXTS])
        assert len(log.get_event_pairs(CBEventType.EMBEDDING)) == len(TEXTS)
        started, ended = zip(*log.get_event_pairs(CBEventType.RETRIEVE), strict=True)
        asked = [event.payload[EventPayload.QUERY_STR] for event in started]
        return [asked, [ids(event.payload[EventPayload.NODES]) for event in ended]]

    assert announced(awaited=True) == announced(awaited=False)
    assert announced(awaited=True)[0] == [*TEXTS]


def test_a_cancelled_batch_ends_all_its_events() -> None:
    log = CallbackLog()
    retriever = built(model := Awaited(), callback_manager=CallbackManager([log]))
    work = retriever.aretrieve_batch(["this hangs", QUERY])
    with traced() as trace:
        asyncio.run(cancelled(work, lambda: len(model._started) == 2))
    assert len(model._ended) == 2
    assert not trace.spans.open_spans
    assert sorted(log.started) == sorted(log.ended)
    assert len(asyncio.run(retriever.aretrieve_batch([QUERY]))[0]) == 5


@pytest.mark.parametrize(("workers", "most"), [(None, len(TEXTS)), (3, 3), (1, 1)])
def test_a_batch_embeds_as_many_queries_at_once_as_the_model_allows(
    workers: int | None, most: int
) -> None:
    retriever = built(model := Awaited(num_workers=workers))
    asyncio.run(retriever.aretrieve_batch([*TEXTS]))
    assert model._most == most


def test_a_batch_awaited_asks_retrievers_behind_index_nodes_for_their_async_form() -> None:
    behind = TextNode(id_="behind", text="What is behind", embedding=[1.0] * 64)
    inner = CAUSRetriever.from_nodes([behind], Awaited())
    sign = IndexNode(id_="sign", text="unmistakable signpost", index_id="s", obj=inner)
    sign.embedding = WordEmbedding().get_text_embedding(sign.text)
    retriever = built(Awaited())
    retriever.add_nodes([sign])
    (found,) = asyncio.run(retriever.aretrieve_batch(["unmistakable signpost"]))
    assert "behind" in ids(found)


@pytest.mark.parametrize("query", ["abc", QueryBundle("abc")])
def test_one_query_is_not_a_batch(query: Any) -> None:
    fusing = CAUSRetriever.from_index(
        VectorStoreIndex(corpus(), embed_model=WordEmbedding()), higher_is_better=True
    )
    for retriever in (built(), fusing):
        with pytest.raises(ValueError, match=r"queries must be a list, got .*abc"):
            asyncio.run(retriever.aretrieve_batch(query))


def test_a_fusing_retriever_awaits_its_dense_leg_for_each_query() -> None:
    nodes = corpus()
    dense = built()
    expected = FusingRetriever(dense, nodes, higher_is_better=True).retrieve_batch([*TEXTS])
    fusing = FusingRetriever(built(Awaited()), nodes, higher_is_better=True)
    with traced() as trace:
        batch = asyncio.run(fusing.aretrieve_batch([*TEXTS]))
    assert [facts(found) for found in batch] == [facts(found) for found in expected]
    assert len(trace.of(RetrievalEndEvent)) == 2 * len(TEXTS)  # of the leg, too
    assert not trace.spans.open_spans
