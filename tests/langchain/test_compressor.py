"""CAUS over the candidates of any retriever."""

import math

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_posrag import HybridScoreCompressor
from shared_core import BM25Index

from .conftest import corpus

QUERY = "relu layer"


@pytest.fixture
def candidates() -> list[Document]:
    documents = corpus()[:8]
    for i, document in enumerate(documents):
        document.metadata["score"] = 1 / (i + 1)
    return documents


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_embeddings_compute_the_dense_score(
    candidates: list[Document], embeddings: Embeddings
) -> None:
    compressor = HybridScoreCompressor(embeddings=embeddings, alpha=1.0)
    query = np.array(embeddings.embed_query(QUERY))

    found = compressor.compress_documents(candidates, QUERY)

    for document in found:
        vector = np.array(embeddings.embed_documents([document.page_content])[0])
        cosine = query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
        assert document.metadata["posrag"]["dense"] == pytest.approx(cosine)
    dense = [document.metadata["posrag"]["dense"] for document in found]
    assert dense == sorted(dense, reverse=True)
    given = {document.id: document.metadata["score"] for document in candidates}
    assert {document.id: document.metadata["score"] for document in found} == given


async def test_async_is_sync(candidates: list[Document], embeddings: Embeddings) -> None:
    for options in ({}, {"embeddings": embeddings}):
        compressor = HybridScoreCompressor(psi="always", **options)
        expected = compressor.compress_documents(candidates, QUERY)

        assert await compressor.acompress_documents(candidates, QUERY) == expected
        assert await compressor.acompress_documents([], QUERY) == []


def test_a_score_under_another_key(candidates: list[Document]) -> None:
    for document in candidates:
        document.metadata["relevance"] = np.float32(document.metadata.pop("score"))
        document.metadata["score"] = "the user's own"
    compressor = HybridScoreCompressor(alpha=1.0, score_key="relevance")

    found = compressor.compress_documents(candidates, QUERY)

    assert ids(found) == ids(candidates)
    assert {document.metadata["score"] for document in found} == {"the user's own"}


def test_equal_documents_stay_in_order() -> None:
    """Their cosines are equal to the last bit."""
    equal = [Document("the same text", id=str(n)) for n in range(10)]
    wide = DeterministicFakeEmbedding(size=384)
    compressor = HybridScoreCompressor(embeddings=wide, k=10, alpha=0.9, psi="never")
    found = compressor.compress_documents(equal, "another text")
    assert ids(found) == [str(n) for n in range(10)]
    assert {document.metadata["posrag"]["dense_norm"] for document in found} == {0.0}


def test_no_candidate_has_a_score(candidates: list[Document]) -> None:
    with pytest.raises(ValueError, match=r"metadata\['rank'\].*score_key=.*embeddings="):
        HybridScoreCompressor(score_key="rank").compress_documents(candidates, QUERY)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ("high", r"metadata\['score'\] must be a number, got 'high': .*score_key="),
        ([1.0], r"metadata\['score'\] must be a number, got \[1.0\]: .*score_key="),
        (math.inf, "inf"),
    ],
)
def test_a_score_that_is_no_finite_number(
    candidates: list[Document], score: object, message: str
) -> None:
    candidates[2].metadata["score"] = score

    with pytest.raises(ValueError, match=message):
        HybridScoreCompressor().compress_documents(candidates, QUERY)


def test_embeddings_that_are_nan(candidates: list[Document]) -> None:
    class Broken(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return [math.nan] * 16

    with pytest.raises(ValueError, match=r"the query: vector 0 .* not finite"):
        HybridScoreCompressor(embeddings=Broken(size=16)).compress_documents(candidates, QUERY)


def test_embeddings_that_do_not_fit_each_other(candidates: list[Document]) -> None:
    """Both dimensions are named, or both numbers, not the operands of a product."""

    class Longer(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return [1.0] * 17

    class Fewer(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts[1:])

    for broken, message in (
        (Longer, "dimension 17, got dimension 16"),
        (Fewer, r"expected 8.*\(7, 16\)"),
    ):
        with pytest.raises(ValueError, match=message):
            HybridScoreCompressor(embeddings=broken(size=16)).compress_documents(candidates, QUERY)


def test_scores_can_be_left_out(candidates: list[Document]) -> None:
    found = HybridScoreCompressor(alpha=1.0, include_scores=False).compress_documents(
        candidates, QUERY
    )

    assert found == candidates


def test_a_corpus_has_its_own_tokenizer() -> None:
    """A second one would be of no effect."""
    with pytest.raises(ValueError, match="leave tokenizer= out"):
        HybridScoreCompressor(corpus=BM25Index.from_texts(["a b"]), tokenizer=str.split)
