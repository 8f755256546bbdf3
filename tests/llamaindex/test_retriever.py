"""What is LlamaIndex's about a retriever: nodes and bundles, callbacks, spans, source documents."""

from __future__ import annotations

import asyncio
import math
from contextvars import Context
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.retrieval import RetrievalStartEvent
from llama_index.core.schema import MetadataMode, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool

from llamaindex_posrag import CAUSRetriever
from shared_core import CAUS

from .checks import facts, ids, why
from .doubles import QUERY, TEXTS, WordEmbedding, corpus, traced

MANY: list[Any] = [
    *TEXTS[:5],
    QUERY,
    f"\ninput is {QUERY}\n",
    QueryBundle("x", embedding=[1.0] * 64),
    QueryBundle("x", custom_embedding_strs=[TEXTS[4], TEXTS[5]]),
]


@pytest.fixture
def retriever() -> CAUSRetriever:
    return CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=5, psi="always")


def test_an_embedding_model_is_asked_for_where_one_is_needed() -> None:
    model: Any = None
    with pytest.raises(ValueError, match=r"^embed_model must be an embedding mod.* got None"):
        CAUSRetriever.from_nodes(corpus(), model)
    given: Any = {"embed_model": WordEmbedding()}
    index = VectorStoreIndex(corpus(), **given)
    with pytest.raises(ValueError, match=r"^embed_model must be left out, as the index embeds"):
        CAUSRetriever.from_index(index, **given)


def test_both_legs_see_the_text_for_embedding() -> None:
    node = TextNode(
        text="plain words",
        metadata={"seen": "visible", "hidden": "invisible"},
        excluded_embed_metadata_keys=["hidden"],
    )
    retriever = CAUSRetriever.from_nodes([node, TextNode(text="other")], WordEmbedding())
    best, *_ = retriever.retrieve(node.get_content(MetadataMode.EMBED))
    assert best.node_id == node.node_id
    assert why(best)["dense"] == pytest.approx(1.0, abs=1e-5)
    retriever.alpha = 0.0
    assert why(retriever.retrieve("visible")[0])["sparse"] > 0
    assert all(why(hit)["sparse"] == 0 for hit in retriever.retrieve("invisible"))


@pytest.mark.parametrize("awaited", [False, True])
def test_a_node_with_an_embedding_keeps_it(awaited: bool) -> None:
    nodes = corpus()[:3]
    nodes[1].embedding = WordEmbedding().get_text_embedding("somewhere else entirely")
    retriever = CAUSRetriever.from_nodes([], WordEmbedding(), alpha=1.0)
    asyncio.run(retriever.aadd_nodes(nodes)) if awaited else retriever.add_nodes(nodes)
    hit = retriever.retrieve("somewhere else entirely")[0]
    assert hit.node.node_id == "n1"
    assert why(hit)["dense"] == pytest.approx(1.0, abs=1e-5)
    assert nodes[1].embedding is not None
    assert hit.node.embedding is None


def test_a_bundle_brings_its_own_embedding_or_strings(retriever: CAUSRetriever) -> None:
    vector = WordEmbedding().get_query_embedding(TEXTS[7])
    mocked = CAUSRetriever(retriever.index, MockEmbedding(embed_dim=64), caus=CAUS(alpha=1.0))
    assert ids(mocked.retrieve(QueryBundle("x", embedding=vector)))[0] == "n7"
    retriever.caus = CAUS(alpha=1.0)
    bundle = QueryBundle("x", custom_embedding_strs=[TEXTS[4], TEXTS[4]])
    assert ids(retriever.retrieve(bundle))[0] == "n4"
    assert ids(asyncio.run(retriever.aretrieve(bundle)))[0] == "n4"


def test_a_retriever_tool_asks_the_question_itself(retriever: CAUSRetriever) -> None:
    tool, plain = RetrieverTool.from_defaults(retriever), retriever.retrieve(QUERY)
    assert ids(tool.call(input=QUERY).raw_output) == ids(tool.call(QUERY).raw_output) == ids(plain)
    assert facts(retriever.retrieve(f"\ninput is {QUERY}\n")) == facts(plain)
    assert facts(retriever.retrieve("input is a word")) != facts(retriever.retrieve("a word"))


@pytest.mark.parametrize("awaited", [False, True])
def test_a_batch_is_what_single_queries_are(retriever: CAUSRetriever, awaited: bool) -> None:
    """To a trace it is one span."""
    with traced() as trace:
        if awaited:
            found = asyncio.run(retriever.aretrieve_batch(MANY))
        else:
            found = retriever.retrieve_batch(MANY)
    assert not trace.spans.open_spans
    assert trace.of(RetrievalStartEvent) == []
    assert found == [retriever.retrieve(query) for query in MANY]
    for query in ("abc", QueryBundle("abc")):  # the letters of a text would be queries
        with pytest.raises(ValueError, match=r"queries must be a list, got .*abc"):
            retriever.retrieve_batch(query)  # type: ignore[arg-type]


def test_the_events_of_past_queries_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback manager forgets them when a trace begins, so the model's has to see one begin."""
    monkeypatch.setattr(Settings, "_callback_manager", manager := CallbackManager([]))
    model = WordEmbedding(callback_manager=manager)
    own: Any = CAUSRetriever.from_nodes(corpus(), model)
    over = CAUSRetriever.from_index(VectorStoreIndex(corpus(), embed_model=model))
    for ask in (lambda: own.retrieve_batch([QUERY] * 3), lambda: over.retrieve(QUERY)):
        kept = []
        for _ in range(3):
            Context().run(ask)  # in this one an earlier test may have left a trace open
            kept.append(sum(map(len, manager.trace_map.values())))
        assert kept == kept[:1] * 3


@pytest.mark.parametrize("awaited", [False, True])
def test_deleting_by_source_document(retriever: CAUSRetriever, awaited: bool) -> None:
    """None is what `ref_doc_id` of a node without a source is, and would delete all of these."""

    def delete(source: Any) -> list[str]:
        return asyncio.run(retriever.adelete(source)) if awaited else retriever.delete(source)

    retriever.add_nodes([TextNode(id_="without a source", text="x")])
    assert delete("no such source") == []
    for no_id in (None, "None", ["d0"]):
        with pytest.raises(ValueError, match="id of one source document"):
            delete(no_id)
    assert sorted(delete("d0")) == ["n0", "n10", "n2", "n4", "n6", "n8"]
    assert len(retriever.index) == 7


def test_embeddings_of_nodes_and_bundles_that_do_not_fit(retriever: CAUSRetriever) -> None:
    """What is given is checked as what the model gives, and nothing is half added."""
    for embedding in ([math.nan] * 64, [1.0] * 63, []):
        bad = TextNode(id_="bad", text="bad", embedding=embedding)
        with pytest.raises(ValueError):
            retriever.add_nodes([TextNode(id_="good", text=QUERY), bad])
        with pytest.raises(ValueError):
            retriever.retrieve(QueryBundle(QUERY, embedding=embedding))
    assert len(retriever.index) == 12
