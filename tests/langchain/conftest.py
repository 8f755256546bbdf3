"""A small corpus, an embedding model that is a function of the text, and retrievers of both."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_posrag import CAUSRetriever


class Unscored(VectorStore):
    """A store that cannot tell scores."""

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> "Unscored":
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError


class Awaited(DeterministicFakeEmbedding):
    """A model whose async form alone works."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("not awaited")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("not awaited")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return super().embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return super().embed_query(text)


WORDS = [
    "conv", "relu", "pool", "norm", "drop", "lstm", "gru", "attention", "loss", "sgd", "adam",
    "embedding", "linear", "tanh",
]  # fmt: skip


def corpus() -> list[Document]:
    """Fourteen documents with ids, texts that share words, and nested metadata."""
    return [
        Document(
            f"the {word} layer of module number {i} beside {WORDS[i - 1]}",
            id=f"d{i}",
            metadata={"lang": "en" if i % 2 else "de", "page": i, "tags": {"kind": [word]}},
        )
        for i, word in enumerate(WORDS)
    ]


@pytest.fixture
def documents() -> list[Document]:
    return corpus()


@pytest.fixture
def embeddings() -> Embeddings:
    return DeterministicFakeEmbedding(size=16)


@pytest.fixture
def retriever(documents: list[Document], embeddings: Embeddings) -> CAUSRetriever:
    return CAUSRetriever.from_documents(documents, embeddings, k=5, psi="always")
