"""CAUS over the candidates of any retriever."""

import asyncio
import copy
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from langchain_core.callbacks import BaseCallbackHandler, Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_posrag import HybridScoreCompressor
from shared_core import CAUS, BM25Index

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


def test_scores_are_those_of_the_core(candidates: list[Document]) -> None:
    texts = [document.page_content for document in candidates]
    dense = [document.metadata["score"] for document in candidates]
    caus = CAUS(k=5, alpha=0.4, psi="always")
    expected = caus.place(caus.rank(dense, BM25Index.from_texts(texts).scores(QUERY)))
    compressor = HybridScoreCompressor(k=5, alpha=0.4, psi="always")

    found = compressor.compress_documents(candidates, QUERY)

    assert ids(found) == [candidates[i].id for i in expected.indices]
    assert [document.metadata["posrag"] for document in found] == expected.explain()
    assert [document.metadata["score"] for document in found] == expected.scores
    assert json.dumps([document.metadata for document in found])


def test_statistics_of_a_whole_corpus(candidates: list[Document]) -> None:
    statistics = BM25Index.from_texts([document.page_content for document in corpus()])
    compressor = HybridScoreCompressor.from_documents(corpus(), k=8)
    texts = [document.page_content for document in candidates]
    expected = dict(zip(ids(candidates), statistics.score_texts(QUERY, texts), strict=True))

    for document in compressor.compress_documents(candidates, QUERY):
        assert document.metadata["posrag"]["sparse"] == pytest.approx(expected[document.id])


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


@pytest.mark.parametrize("embedded", [False, True])
async def test_a_subclass_is_asked_in_its_own_way_when_awaited(
    candidates: list[Document], embeddings: Embeddings, embedded: bool
) -> None:
    """Also where the embeddings could be awaited; it is given the callbacks, too."""

    class Noting(HybridScoreCompressor):
        def compress_documents(
            self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
        ) -> list[Document]:
            noted.append(callbacks)
            return super().compress_documents(documents, query, callbacks)[:1]

    noted: list[Callbacks] = []
    handlers: list[BaseCallbackHandler] = [BaseCallbackHandler()]
    compressor = Noting(embeddings=embeddings if embedded else None)

    found = await compressor.acompress_documents(candidates, QUERY, handlers)

    assert found == compressor.compress_documents(candidates, QUERY)
    assert noted == [handlers, None]


async def test_embeddings_are_awaited_in_a_subclass_that_changes_nothing(
    candidates: list[Document],
) -> None:
    class Awaited(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("not awaited")

        async def aembed_query(self, text: str) -> list[float]:
            return super().embed_query(text)

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return self.embed_documents(texts)

    class Same(HybridScoreCompressor):
        """With a name of its own."""

    found = await Same(embeddings=Awaited(size=16)).acompress_documents(candidates, QUERY)
    assert len(found) == 8


def test_distances(candidates: list[Document]) -> None:
    compressor = HybridScoreCompressor(alpha=1.0, higher_is_better=False)

    found = compressor.compress_documents(candidates, QUERY)

    assert ids(found) == ids(candidates)[::-1]
    assert found[0].metadata["posrag"]["dense"] == -1 / 8


def test_a_score_under_another_key(candidates: list[Document]) -> None:
    for document in candidates:
        document.metadata["relevance"] = np.float32(document.metadata.pop("score"))
        document.metadata["score"] = "the user's own"
    compressor = HybridScoreCompressor(alpha=1.0, score_key="relevance")

    found = compressor.compress_documents(candidates, QUERY)

    assert ids(found) == ids(candidates)
    assert {document.metadata["score"] for document in found} == {"the user's own"}


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_candidate_without_a_score_counts_as_the_least(
    candidates: list[Document], missing: float | None
) -> None:
    candidates[0].metadata["score"] = missing

    found = HybridScoreCompressor(alpha=1.0).compress_documents(candidates, QUERY)

    details = {document.id: document.metadata["posrag"] for document in found}
    assert details["d0"]["dense"] == 1 / 8
    assert details["d0"]["dense_norm"] == 0


def test_equal_documents_stay_in_order() -> None:
    """Their cosines are equal to the last bit."""
    equal = [Document("the same text", id=str(n)) for n in range(10)]
    wide = DeterministicFakeEmbedding(size=384)
    compressor = HybridScoreCompressor(embeddings=wide, k=10, alpha=0.9, psi="never")
    found = compressor.compress_documents(equal, "another text")
    assert ids(found) == [str(n) for n in range(10)]
    assert {document.metadata["posrag"]["dense_norm"] for document in found} == {0.0}


def test_tied_scores_are_stable_and_leave_the_order_to_bm25(candidates: list[Document]) -> None:
    for document in candidates:
        document.metadata["score"] = -3.0

    found = HybridScoreCompressor(k=8).compress_documents(candidates, "relu")
    unknown = HybridScoreCompressor(k=8).compress_documents(candidates, "zzz")

    assert found[0].id == "d1"
    assert ids(unknown) == ids(candidates)


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


def test_no_candidates(embeddings: Embeddings) -> None:
    assert HybridScoreCompressor().compress_documents([], QUERY) == []
    assert asyncio.run(HybridScoreCompressor().acompress_documents([], QUERY)) == []


def test_k_beyond_the_candidates(candidates: list[Document]) -> None:
    assert len(HybridScoreCompressor(k=50).compress_documents(candidates, QUERY)) == 8
    assert len(HybridScoreCompressor(k=3).compress_documents(candidates, QUERY)) == 3


def test_candidates_are_not_touched(candidates: list[Document]) -> None:
    before = copy.deepcopy(candidates)

    for document in HybridScoreCompressor(psi="always").compress_documents(candidates, QUERY):
        document.metadata["tags"]["kind"].append("changed")

    assert candidates == before


def test_scores_can_be_left_out(candidates: list[Document]) -> None:
    found = HybridScoreCompressor(alpha=1.0, include_scores=False).compress_documents(
        candidates, QUERY
    )

    assert found == candidates


def test_tokenizer_of_the_callers_own() -> None:
    def tokenizer(text: str) -> list[str]:
        return text.split("q")

    documents = [Document(text, metadata={"score": 0.5}) for text in ("aqb", "bqc", "cqd")]
    own = HybridScoreCompressor(tokenizer=tokenizer, k=1)
    whole = HybridScoreCompressor.from_documents(documents, tokenizer=tokenizer, k=1)

    for compressor in (own, whole):
        assert compressor.compress_documents(documents, "xqd")[0].page_content == "cqd"


def test_a_corpus_has_its_own_tokenizer() -> None:
    """A second one would be of no effect."""
    with pytest.raises(ValueError, match="leave tokenizer= out"):
        HybridScoreCompressor(corpus=BM25Index.from_texts(["a b"]), tokenizer=str.split)
