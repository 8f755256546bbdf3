"""The same order, scores and explanations from the core, LangChain and LlamaIndex."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

import langchain_posrag as on_langchain
import llamaindex_posrag as on_llamaindex
from shared_core import CAUS, Arrangement, HybridIndex
from shared_core.types import Query

from .both_sides import LangChainEmbedding, LlamaIndexEmbedding, corpus, embed

CORPUS = corpus()
QUERIES = (
    "convolution with stride",
    "softmax attention attention head",
    "learning rate of the optimizer",
    "nothing known here",
    "padding",
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def index() -> HybridIndex:
    index = HybridIndex()
    index.add(CORPUS.passages, CORPUS.vectors)
    return index


def langchain_retriever(**options: Any) -> on_langchain.CAUSRetriever:
    return on_langchain.CAUSRetriever.from_documents(
        CORPUS.documents, LangChainEmbedding(), **options
    )


def llamaindex_retriever(**options: Any) -> on_llamaindex.CAUSRetriever:
    return on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), **options)


def document_ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def node_ids(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.node_id for node in nodes]


def assert_all_the_same(
    core: Arrangement, documents: list[Document], nodes: list[NodeWithScore], ids: list[str]
) -> None:
    """Ids, scores and explanations, slot by slot and bit for bit."""
    assert document_ids(documents) == node_ids(nodes) == ids
    assert [document.metadata["score"] for document in documents] == core.scores
    assert [node.score for node in nodes] == core.scores
    assert [document.metadata["posrag"] for document in documents] == core.explain()
    assert [node.posrag for node in nodes] == core.explain()  # type: ignore[attr-defined]


def test_filters_mean_the_same(index: HybridIndex) -> None:
    """Equal, and any of: each side in its own form."""
    any_of = MetadataFilter(key="number", value=[3, 14, 15], operator=FilterOperator.IN)
    cases = [
        ({"lang": "de"}, MetadataFilters.from_dict({"lang": "de"})),
        ({"number": [3, 14, 15]}, MetadataFilters(filters=[any_of])),
        ({"lang": "en", "number": 4}, MetadataFilters.from_dict({"lang": "en", "number": 4})),
        ({"lang": "fr"}, MetadataFilters.from_dict({"lang": "fr"})),
    ]
    for where, filters in cases:
        for query in QUERIES:
            (core,) = CAUS().search(index, [Query(query, embed(query))], where=where)
            assert_all_the_same(
                core,
                langchain_retriever().invoke(query, filter=where),
                llamaindex_retriever(filters=filters).retrieve(query),
                [passage.id for passage in core.passages],
            )


def test_retrievers_over_the_frameworks_own_stores_agree() -> None:
    """InMemoryVectorStore and SimpleVectorStore both score cosines; deep enough, that is exact."""
    store = InMemoryVectorStore(LangChainEmbedding())
    store.add_documents(CORPUS.documents)
    one = on_langchain.CAUSRetriever.from_vectorstore(
        store, CORPUS.documents, k=8, fetch_k=60, psi="always"
    )
    other = on_llamaindex.CAUSRetriever.from_index(
        VectorStoreIndex(CORPUS.nodes, embed_model=LlamaIndexEmbedding()),
        higher_is_better=True,
        k=8,
        fetch_k=60,
        psi="always",
    )
    for query in QUERIES:
        documents, nodes = one.invoke(query), other.retrieve(query)
        scores = [document.metadata["score"] for document in documents]
        assert scores == pytest.approx([node.score for node in nodes], abs=1e-6)
        assert [document.metadata["posrag"]["rank"] for document in documents] == [
            node.posrag["rank"]  # type: ignore[attr-defined]
            for node in nodes
        ]


class Borrowed(VectorStore):
    """A store of LangChain's that finds what an index of LlamaIndex's finds, ties and all."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index = index

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Borrowed:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    def similarity_search_with_score(self, query: str, k: int) -> list[tuple[Document, float]]:  # type: ignore[override]
        by_id = {document.id: document for document in CORPUS.documents}
        nodes = self.index.as_retriever(similarity_top_k=k).retrieve(query)
        return [(by_id[node.node.node_id], node.score or 0.0) for node in nodes]


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("fetch_k", [1, 9, 60])
def test_retrievers_over_the_same_hits_agree(fetch_k: int, fusion: Any) -> None:
    """Equal scores keep the order of the hits, with what only BM25 finds behind them."""
    index = VectorStoreIndex(CORPUS.nodes, embed_model=LlamaIndexEmbedding())
    options: dict[str, Any] = {"k": 9, "fetch_k": fetch_k, "fusion": fusion}
    one = on_langchain.CAUSRetriever.from_vectorstore(
        Borrowed(index), CORPUS.documents, higher_is_better=True, **options
    )
    other = on_llamaindex.CAUSRetriever.from_index(index, higher_is_better=True, **options)
    for query in QUERIES:
        documents, nodes = one.invoke(query), other.retrieve(query)
        assert document_ids(documents) == node_ids(nodes)
        assert [document.metadata["posrag"] for document in documents] == [
            node.posrag  # type: ignore[attr-defined]
            for node in nodes
        ]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": -1},
        {"alpha": 1.5},
        {"alpha": "best"},
        {"fetch_k": 0},
        {"placement": "v_shape"},
        {"fusion": "sum"},
        {"psi": -1.0},
        {"evidence": "strong"},
        {"psi": "always", "placement": "max_relevance"},
    ],
    ids=repr,
)
def test_bad_options_are_refused_on_both_sides(options: dict[str, Any]) -> None:
    """A ValueError that shows the value, as in the core."""
    shown = str([*options.values()][-1])
    for make in (CAUS, langchain_retriever, llamaindex_retriever):
        with pytest.raises(ValueError, match=shown):
            make(**options)
