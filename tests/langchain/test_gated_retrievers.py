"""What may stand behind the gate: anything that retrieves, also what rewrites the question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from langchain_classic.retrievers import EnsembleRetriever, MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from langchain_core.runnables import ConfigurableField, Runnable, RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from langchain_posrag import (
    CAUSRetriever,
    ContextAwarenessGate,
    GatedRetriever,
    PlacementTransformer,
)
from tests.core.gating.words import INSIDE, OUTSIDE, PASSAGES, embed
from tests.langchain.test_gating import Words, documents
from tests.langchain.test_tracing import Tracer

Ask = Callable[[Runnable[str, Any], str, RunnableConfig | None], Any]
Host = type[GatedRetriever] | type[ContextAwarenessGate]
Wrap = Callable[[CAUSRetriever], RetrieverLike]


def invoked(asked: Runnable[str, Any], question: str, config: RunnableConfig | None = None) -> Any:
    return asked.invoke(question, config)


def awaited(asked: Runnable[str, Any], question: str, config: RunnableConfig | None = None) -> Any:
    return asyncio.run(asked.ainvoke(question, config))


def batched(asked: Runnable[str, Any], question: str, config: RunnableConfig | None = None) -> Any:
    return asked.batch([OUTSIDE, question], config)[1]


def batched_asynchronously(
    asked: Runnable[str, Any], question: str, config: RunnableConfig | None = None
) -> Any:
    return asyncio.run(asked.abatch([OUTSIDE, question], config))[1]


WAYS = [invoked, awaited, batched, batched_asynchronously]
HOSTS = [GatedRetriever, ContextAwarenessGate]


def found(answer: Any) -> list[Document]:
    """Return the documents of either host."""
    documents: list[Document] = answer if isinstance(answer, list) else answer.documents
    return documents


def similarity_told(ask: Ask, retriever: RetrieverLike, words: Words, question: str) -> float:
    """Return the similarity that a gate over a retriever decides by."""
    gate = ContextAwarenessGate.from_retriever(retriever, words, documents())
    similarity: float = ask(gate, question, None).decision["similarity"]
    return similarity


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def retriever(words: Words) -> CAUSRetriever:
    return CAUSRetriever.from_documents(documents(), words, k=3)


RETRIEVERS: dict[str, Wrap] = {
    "with_config": lambda retriever: retriever.with_config(tags=["mine"]),
    "bind": lambda retriever: retriever.bind(k=3),
    "retry": lambda retriever: retriever.with_retry(),
    "pipe": lambda retriever: retriever | PlacementTransformer("sequential"),
    "fallbacks": lambda retriever: retriever.with_fallbacks([retriever]),
    "configurable": lambda retriever: retriever.configurable_fields(k=ConfigurableField("k")),
    "ensemble": lambda retriever: EnsembleRetriever(retrievers=[retriever], weights=[1.0]),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("wrap", RETRIEVERS.values(), ids=RETRIEVERS)
@pytest.mark.parametrize("ask", WAYS)
def test_whatever_retrieves_may_stand_behind_the_gate(
    retriever: CAUSRetriever, words: Words, wrap: Wrap, host: Host, ask: Ask
) -> None:
    """It is decided as about the bare one, and what is found passes."""
    bare = host.from_retriever(retriever, words, documents())
    gated = host.from_retriever(wrap(retriever), words, documents())
    one, other = found(ask(bare, INSIDE, None)), found(ask(gated, INSIDE, None))
    assert [each.id for each in one] == [each.id for each in other]
    details = [each.metadata["posrag"]["retrieval"] for each in (*one, *other)]
    assert all(detail == details[0] for detail in details)
    assert found(ask(gated, OUTSIDE, None)) == []


@pytest.mark.parametrize("host", HOSTS)
def test_what_does_not_retrieve_may_not(retriever: CAUSRetriever, host: Host) -> None:
    """Said at once."""
    gate = host.from_retriever(retriever).gate
    with pytest.raises(ValidationError, match="instance of Runnable"):
        host(retriever=lambda query: [], gate=gate)


def test_settings_that_are_bound_do_not_hide_the_retriever(
    retriever: CAUSRetriever, words: Words
) -> None:
    """Its index and model are found below them, and its vectors are not computed again."""
    bound = retriever.with_config(tags=["mine"]).bind(k=1)
    before = words.passages
    gated = GatedRetriever.from_retriever(bound)
    assert gated.embeddings is words
    assert words.passages - before < len(PASSAGES) + 100, "key phrases and everyday questions alone"
    before = words.passages
    assert len(gated.invoke(INSIDE)) == 1
    assert words.passages == before


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("ask", WAYS)
def test_a_call_configures_the_retriever(
    retriever: CAUSRetriever, words: Words, host: Host, ask: Ask
) -> None:
    """As it does without the gate; and a chain around the gate hands the setting on."""
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    gated = host.from_retriever(configurable, words, documents())
    assert [each.id for each in gated.config_specs] == ["k"]
    chain = RunnableLambda(str) | gated
    for asked in (gated, chain, gated.with_config(configurable={"k": 2})):
        assert len(found(ask(asked, INSIDE, {"configurable": {"k": 1}}))) == 1
    assert len(found(ask(gated, INSIDE, None))) == 3


def test_the_config_of_a_call_is_no_option(retriever: CAUSRetriever) -> None:
    """What goes to the retriever behind the gate is the call's own config alone."""
    gated = GatedRetriever.from_retriever(retriever)
    with pytest.raises(TypeError, match="unexpected keyword argument 'called_with'"):
        gated.invoke(INSIDE, called_with={"tags": ["other"]})
    with pytest.raises(TypeError, match="unexpected keyword argument 'called_with'"):
        asyncio.run(gated.ainvoke(INSIDE, called_with={"tags": ["other"]}))


@pytest.mark.parametrize("ask", [invoked, awaited])
def test_names_and_ids_of_the_gate_s_run_are_not_those_of_the_retriever_s(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """Its tags and metadata are inherited, once."""
    tracer = Tracer()
    config: RunnableConfig = {
        "callbacks": [tracer],
        "run_name": "mine",
        "tags": ["a"],
        "metadata": {"b": 1},
    }
    ask(GatedRetriever.from_retriever(retriever), INSIDE, config)
    (root,) = tracer.roots
    (decision,) = root.child_runs
    (below,) = decision.child_runs
    assert (root.name, decision.name, below.name) == ("mine", "retrieve_or_not", "CAUSRetriever")
    for run in (root, decision, below):
        assert run.tags == ["a"]
        assert (run.extra or {})["metadata"]["b"] == 1


def handing_out(documents: list[Document]) -> RetrieverLike:
    """Return what finds the same documents whatever it is asked."""

    def hand_out(question: str) -> list[Document]:
        return documents

    return RunnableLambda(hand_out)


def many_queries(retriever: RetrieverLike, *queries: str) -> MultiQueryRetriever:
    """Return LangChain's MultiQueryRetriever with a model that answers with given queries."""
    assert isinstance(retriever, BaseRetriever)
    return MultiQueryRetriever.from_llm(retriever, FakeListLLM(responses=["\n".join(queries)]))


@pytest.mark.parametrize("ask", [invoked, awaited])
@pytest.mark.parametrize("kind", ["ours", "store"])
def test_many_queries_find_a_passage_once(
    retriever: CAUSRetriever, words: Words, kind: Literal["ours", "store"], ask: Ask
) -> None:
    """Under LangChain's MultiQueryRetriever, which drops what is equal, metadata and all."""
    store = InMemoryVectorStore.from_documents(documents(), words)
    other = store.as_retriever(search_kwargs={"k": 3})
    gated = GatedRetriever.from_retriever(
        retriever if kind == "ours" else other, words, documents(), include_scores=False
    )
    asked = [INSIDE, PASSAGES[4], "bees and honey in the hive"]
    each = [document.id for query in asked for document in gated.invoke(query)]
    assert len(each) > len({*each}), "or this test shows nothing"
    together = ask(many_queries(gated, *asked), INSIDE, None)
    assert len(together) == len({*each})
    assert {document.id for document in together} == {*each}


@pytest.mark.parametrize("host", HOSTS)
def test_without_scores_documents_are_as_they_were(words: Words, host: Host) -> None:
    """A score of the user's own stays; of ours, neither that of the search nor of a slot."""
    corpus = [Document(text, id=str(number)) for number, text in enumerate(PASSAGES)]
    for own in ({}, {"score": 7}):
        mine = [Document(each.page_content, id=each.id, metadata=own) for each in corpus]
        retriever = CAUSRetriever.from_documents(mine, words, k=3)
        chain = retriever | PlacementTransformer("sequential")
        inner = GatedRetriever.from_retriever(handing_out(mine), words, mine)
        for behind in (retriever, chain, inner):
            gated = host.from_retriever(behind, words, mine, include_scores=False)
            through = found(gated.invoke(INSIDE))
            assert [each.id for each in through] == [each.id for each in behind.invoke(INSIDE)]
            assert all(each in mine for each in through)


@pytest.mark.parametrize("host", HOSTS)
def test_without_scores_the_user_s_own_keys_of_our_names_stay(words: Words, host: Host) -> None:
    """And the documents are copies, down to the user's lists."""
    mine = [
        Document(text, metadata={"score": 7, "posrag": {"score": 7, "mine": [number]}})
        for number, text in enumerate(PASSAGES)
    ]
    gated = host.from_retriever(handing_out(mine), words, mine, include_scores=False)
    through = found(gated.invoke(INSIDE))
    assert through == mine
    through[0].metadata["posrag"]["mine"].append("changed")
    assert mine[0].metadata["posrag"]["mine"] == [0]


def test_without_scores_after_loading(retriever: CAUSRetriever, tmp_path: Any) -> None:
    """It is no part of what is saved."""
    GatedRetriever.from_retriever(retriever).gate.save(tmp_path / "gate")
    gated = GatedRetriever.load(tmp_path / "gate", retriever, include_scores=False)
    assert {*gated.invoke(INSIDE)[0].metadata} == {"even"}


@pytest.mark.parametrize("include_scores", [True, False])
def test_documents_of_the_user_s_own_class_stay_what_they_are(
    words: Words, include_scores: bool
) -> None:
    """With the fields that it adds."""

    class Scanned(Document):
        page: int = 0

    mine: list[Document] = [Scanned(page_content=text, page=5) for text in PASSAGES]
    gated = GatedRetriever.from_retriever(
        handing_out(mine), words, mine, include_scores=include_scores
    )
    through = gated.invoke(INSIDE)
    assert len(through) == len(mine)
    assert all(isinstance(each, Scanned) and each.page == 5 for each in through)


def rewritten(retriever: RetrieverLike, text: str) -> RetrieverLike:
    """Return a chain that searches for a text, whatever it is asked."""

    def rewrite(question: str) -> str:
        return text

    return RunnableLambda(rewrite) | retriever


REWRITING: dict[str, Wrap] = {
    "hyde": lambda retriever: rewritten(retriever, PASSAGES[4]),
    "many queries": lambda retriever: many_queries(retriever, INSIDE, PASSAGES[4]),
    "one query": lambda retriever: many_queries(retriever, INSIDE),
    "mixed": lambda retriever: EnsembleRetriever(
        retrievers=[retriever, rewritten(retriever, INSIDE)], weights=[0.5, 0.5]
    ),
}


@pytest.mark.parametrize("wrap", REWRITING.values(), ids=REWRITING)
@pytest.mark.parametrize("ask", [invoked, awaited])
def test_the_question_is_judged_not_what_it_was_rewritten_to(
    retriever: CAUSRetriever, words: Words, wrap: Wrap, ask: Ask
) -> None:
    """The cosines that documents tell are of the text that was searched."""
    rewriting = wrap(retriever)
    texts = [document.page_content for document in rewriting.invoke(OUTSIDE)]
    own = max(float(np.dot(embed(text), embed(OUTSIDE))) for text in texts)
    told = similarity_told(ask, rewriting, words, OUTSIDE)
    assert told == pytest.approx(own, abs=1e-6)
    assert told < 0.3 < similarity_told(ask, retriever, words, INSIDE)
    gate = GatedRetriever.from_retriever(retriever).gate
    with pytest.raises(ValueError, match="has no embeddings: give embeddings="):
        GatedRetriever(retriever=rewriting, gate=gate).invoke(OUTSIDE)


@pytest.mark.parametrize("wrap", RETRIEVERS.values(), ids=RETRIEVERS)
@pytest.mark.parametrize("ask", WAYS)
def test_nothing_is_embedded_again_where_the_question_was_searched(
    retriever: CAUSRetriever, words: Words, wrap: Wrap, ask: Ask
) -> None:
    """Whatever the retriever is wrapped in, and a transform of the gate's own."""
    asked = [INSIDE] if ask in (invoked, awaited) else [INSIDE, OUTSIDE]
    for transform in (str, str.upper):
        gate = GatedRetriever.from_retriever(
            wrap(retriever), words, documents(), transform=transform
        )
        words.queries.clear()
        before = words.passages
        ask(gate, INSIDE, None)
        assert sorted(words.queries) == sorted(map(transform, asked)), "each query once"
        assert words.passages == before
