"""The compressor over LangChain's candidates: scores out of metadata, or of an embedding model."""

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from langchain_posrag import HybridScoreCompressor
from tests.adapters.drivers import ids

from .conftest import Awaited, corpus

QUERY = "relu layer"


@pytest.fixture
def candidates() -> list[Document]:
    documents = corpus()[:8]
    for i, document in enumerate(documents):
        document.metadata["score"] = 1 / (i + 1)
    return documents


def test_embeddings_compute_the_dense_score(
    candidates: list[Document], embeddings: Embeddings
) -> None:
    compressor = HybridScoreCompressor(embeddings=embeddings, alpha=1.0)
    query = np.array(embeddings.embed_query(QUERY))
    found = compressor.compress_documents(candidates, QUERY)
    dense = [document.metadata["posrag"]["dense"] for document in found]
    assert dense == sorted(dense, reverse=True)
    for document in found:
        vector = np.array(embeddings.embed_documents([document.page_content])[0])
        cosine = query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
        assert document.metadata["posrag"]["dense"] == pytest.approx(cosine)


async def test_async_is_sync(candidates: list[Document], embeddings: Embeddings) -> None:
    """And awaits the model."""
    for model, awaited in ((None, None), (embeddings, Awaited(size=16))):
        expected = HybridScoreCompressor(embeddings=model).compress_documents(candidates, QUERY)
        compressor = HybridScoreCompressor(embeddings=awaited)
        assert await compressor.acompress_documents(candidates, QUERY) == expected
        assert await compressor.acompress_documents([], QUERY) == []


def test_a_score_under_another_key(candidates: list[Document]) -> None:
    for document in candidates:
        document.metadata["relevance"] = np.float32(document.metadata.pop("score"))
    compressor = HybridScoreCompressor(alpha=1.0, score_key="relevance")
    assert ids(compressor.compress_documents(candidates, QUERY)) == ids(candidates)
    candidates[2].metadata["relevance"] = "high"
    with pytest.raises(ValueError, match=r"metadata\['relevance'\] must be a number, got 'high'"):
        compressor.compress_documents(candidates, QUERY)
