"""The gate in both frameworks: the same fit, the same evidence, the same decision."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.runnables import RunnableLambda
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import TransformRetriever
from llama_index.core.schema import QueryBundle

import langchain_posrag as on_langchain
import llamaindex_posrag as on_llamaindex
from tests.core.gating.words import INSIDE, OUTSIDE
from tests.parity.both_sides import LangChainEmbedding, LlamaIndexEmbedding, corpus

CORPUS = corpus()

QUERIES = (
    "which kernel and stride for a feature map",
    "softmax over query and key of a head",
    "learning rate",
    "padding",
    "who wrote the first detective novel",
    "xylophone",
    INSIDE,
    OUTSIDE,
)


def decisions(**fit: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Decide about every query in LangChain and in LlamaIndex, over one corpus."""
    retriever = on_langchain.CAUSRetriever.from_documents(
        CORPUS.documents, LangChainEmbedding(), k=3
    )
    gate = on_langchain.ContextAwarenessGate.from_retriever(retriever, **fit)
    engine = on_llamaindex.GatedQueryEngine.from_retriever(
        on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), k=3),
        MockLLM(),
        **fit,
    )
    return [
        (gate.invoke(query).decision, engine.query(query).metadata["retrieval"])
        for query in QUERIES
    ]


@pytest.mark.parametrize(
    "fit",
    [
        {},
        {"policy": "median", "threshold": -0.1},
        {"policy": 0.25},
        {"coverage": True},
        {"transform": str.upper},
        {"negatives": QUERIES * 2},
    ],
    ids=str,
)
def test_the_same_query_is_decided_the_same(fit: dict[str, Any]) -> None:
    """To the last bit, with every option of the fit; and not the same for every query."""
    both = decisions(**fit)
    for one, other in both:
        assert one == other
    if not fit:
        assert {one["retrieve"] for one, _ in both} == {True, False}


class Rewritten(HyDEQueryTransform):
    """Searches for a text, whatever it is asked."""

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(QUERIES[0])


@pytest.mark.parametrize("words", [False, True])
def test_a_retriever_that_rewrites_the_query_is_decided_about_the_same(words: bool) -> None:
    """To the last bit: by the query, and not by what was searched."""

    def rewrite(query: str) -> str:
        return QUERIES[0]

    ours = on_langchain.CAUSRetriever.from_documents(CORPUS.documents, LangChainEmbedding(), k=3)
    gate = on_langchain.ContextAwarenessGate.from_retriever(
        RunnableLambda(rewrite) | ours, LangChainEmbedding(), CORPUS.documents, coverage=words
    )
    theirs = on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), k=3)
    engine = on_llamaindex.GatedQueryEngine.from_retriever(
        TransformRetriever(theirs, Rewritten(llm=MockLLM())),
        MockLLM(),
        CORPUS.nodes,
        embed_model=LlamaIndexEmbedding(),
        coverage=words,
    )
    decided = [gate.invoke(query).decision for query in QUERIES]
    assert decided == [engine.query(query).metadata["retrieval"] for query in QUERIES]
    assert len({each["similarity"] for each in decided}) == len(QUERIES)


def test_what_passes_the_gate_is_the_same() -> None:
    """The same passages in the same order, or none."""
    gated = on_langchain.GatedRetriever.from_retriever(
        on_langchain.CAUSRetriever.from_documents(CORPUS.documents, LangChainEmbedding(), k=3)
    )
    engine = on_llamaindex.GatedQueryEngine.from_retriever(
        on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), k=3), MockLLM()
    )
    for query in QUERIES:
        found = engine.query(query).source_nodes
        assert [each.id for each in gated.invoke(query)] == [each.node_id for each in found]


def test_a_fit_of_one_framework_serves_the_other(tmp_path: Any) -> None:
    """The file knows no framework, and the model's fingerprint is its vectors."""
    retriever = on_langchain.CAUSRetriever.from_documents(CORPUS.documents, LangChainEmbedding())
    gate = on_langchain.ContextAwarenessGate.from_retriever(retriever).gate
    gate.save(tmp_path / "gate")
    loaded = on_llamaindex.load_gate(tmp_path / "gate", LlamaIndexEmbedding())
    assert loaded.candidates.levels == gate.candidates.levels
