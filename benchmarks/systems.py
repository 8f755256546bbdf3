"""The systems of the speed benchmark: ours behind both adapters, and each framework's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import faiss
import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import QueryBundle, TextNode

from benchmarks.corpus import Corpus
from langchain_posrag import CAUSRetriever as LangChainCAUS
from llamaindex_posrag import CAUSRetriever as LlamaIndexCAUS

K, FETCH_K = 10, 50
OPTIONS: dict[str, Any] = {"k": K, "fetch_k": FETCH_K, "psi": "always"}

Search = Callable[[int], Any]
"""Answers the query of a number."""


class Known(Embeddings):
    """LangChain embeddings that are looked up."""

    def __init__(self, corpus: Corpus) -> None:
        self.passages = corpus.vectors
        self.of = dict(zip(corpus.queries, corpus.query_vectors.tolist(), strict=True))

    def embed_documents(self, texts: list[str]) -> Any:
        return self.passages

    def embed_query(self, text: str) -> list[float]:
        return self.of[text]


class KnownLlamaIndex(BaseEmbedding):
    """LlamaIndex embeddings that are looked up."""

    of: dict[str, list[float]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.of[query]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.of[query]

    def _get_text_embedding(self, text: str) -> list[float]:
        raise LookupError("nodes carry their embeddings")


def documents(corpus: Corpus) -> list[Document]:
    return [Document(id=str(at), page_content=text) for at, text in enumerate(corpus.texts)]


def nodes(corpus: Corpus) -> list[TextNode]:
    return [
        TextNode(id_=str(at), text=text, embedding=vector)
        for at, (text, vector) in enumerate(
            zip(corpus.texts, map(np.ndarray.tolist, corpus.vectors), strict=True)
        )
    ]


def langchain_posrag(corpus: Corpus, docs: Sequence[Document]) -> Any:
    return LangChainCAUS.from_documents(docs, Known(corpus), **OPTIONS)


def llamaindex_posrag(corpus: Corpus, these: Sequence[TextNode]) -> Any:
    embed_model = KnownLlamaIndex(of=Known(corpus).of)
    return LlamaIndexCAUS.from_nodes(these, embed_model, **OPTIONS)


def langchain_ensemble(corpus: Corpus, docs: Sequence[Document]) -> Any:
    from langchain_classic.retrievers import EnsembleRetriever

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.retrievers import BM25Retriever
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy

    index = faiss.IndexFlatIP(corpus.vectors.shape[1])
    index.add(corpus.vectors)
    store = FAISS(
        Known(corpus),
        index,
        InMemoryDocstore({doc.id or "": doc for doc in docs}),
        {at: doc.id or "" for at, doc in enumerate(docs)},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
    sparse = BM25Retriever.from_documents(list(docs), k=FETCH_K)
    dense = store.as_retriever(search_kwargs={"k": FETCH_K})
    return EnsembleRetriever(retrievers=[sparse, dense], weights=[0.7, 0.3])


def llamaindex_fusion(corpus: Corpus, these: Sequence[TextNode]) -> Any:
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.retrievers.bm25 import BM25Retriever
    from llama_index.vector_stores.faiss import FaissVectorStore

    store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(corpus.vectors.shape[1]))
    index = VectorStoreIndex(
        list(these),
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=KnownLlamaIndex(of=Known(corpus).of),
    )
    return QueryFusionRetriever(
        [
            index.as_retriever(similarity_top_k=FETCH_K),
            BM25Retriever.from_defaults(nodes=list(these), similarity_top_k=FETCH_K),
        ],
        llm=MockLLM(),
        mode="relative_score",
        retriever_weights=[0.3, 0.7],
        similarity_top_k=K,
        num_queries=1,
        use_async=False,
    )


def empty_langchain() -> Any:
    """LangChain's own overhead: a retriever that returns nothing."""
    from langchain_core.retrievers import BaseRetriever

    class Empty(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return []

    return Empty()


def empty_llamaindex() -> Any:
    """LlamaIndex's own overhead: a retriever that returns nothing."""
    from llama_index.core.base.base_retriever import BaseRetriever

    class Empty(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
            return []

    return Empty()
