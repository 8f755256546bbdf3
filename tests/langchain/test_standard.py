"""LangChain's own conformance suites, none of their tests skipped."""

from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing.base import DocumentIndex
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_tests.integration_tests.indexer import (
    AsyncDocumentIndexTestSuite,
    DocumentIndexerTestSuite,
)

from langchain_posrag import CAUSRetriever

from .conftest import corpus

EMBEDDINGS = DeterministicFakeEmbedding(size=16)


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[CAUSRetriever]:
        return CAUSRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        index = CAUSRetriever.from_documents(corpus(), EMBEDDINGS).index
        return {"index": index, "embeddings": EMBEDDINGS}

    @property
    def retriever_query_example(self) -> str:
        return "relu layer"


class TestRetrieverOverVectorStore(TestRetriever):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        store = InMemoryVectorStore.from_documents(corpus(), EMBEDDINGS)
        return {"index": CAUSRetriever.from_vectorstore(store, corpus()).index}


class TestIndex(DocumentIndexerTestSuite):
    @pytest.fixture
    def index(self) -> Generator[DocumentIndex, None, None]:
        return CAUSRetriever.from_documents([], EMBEDDINGS)


class TestAsyncIndex(AsyncDocumentIndexTestSuite):
    @pytest.fixture
    async def index(self) -> AsyncGenerator[DocumentIndex, None]:
        return CAUSRetriever.from_documents([], EMBEDDINGS)
