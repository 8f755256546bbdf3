"""A vector store of LangChain's as the dense leg; see the contract and the core's engines, too."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from rank_bm25 import BM25Okapi, BM25Plus

from langchain_posrag import CAUSRetriever
from tests.adapters.drivers import ids

from .conftest import Unscored

QUERY = "the relu layer"


class UnitEmbedding(DeterministicFakeEmbedding):
    """Of length one, so that distance, inner product and cosine agree."""

    def embed_query(self, text: str) -> list[float]:
        vector = np.array(super().embed_query(text))
        return (vector / np.linalg.norm(vector)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Bare(Unscored):
    """A store of the oldest kind: distances, no ids, no get."""

    def similarity_search_with_score(self, query: str, k: int = 4) -> Any:  # type: ignore[override]
        return []


@pytest.fixture
def embeddings() -> Embeddings:
    return UnitEmbedding(size=16)


@pytest.fixture(params=["memory", "MAX_INNER_PRODUCT", "EUCLIDEAN_DISTANCE"])
def store(
    request: pytest.FixtureRequest, documents: list[Document], embeddings: Embeddings
) -> VectorStore:
    if request.param == "memory":
        return InMemoryVectorStore.from_documents(documents, embeddings)
    strategy = DistanceStrategy(request.param)
    return FAISS.from_documents(documents, embeddings, distance_strategy=strategy)


async def test_whatever_its_scores_are_the_order_is_that_of_the_own_index(
    store: VectorStore, documents: list[Document], embeddings: Embeddings
) -> None:
    """An inner product of unit vectors is their cosine, and orders as their distance does."""
    own = CAUSRetriever.from_documents(documents, embeddings, alpha=1.0)
    retriever = CAUSRetriever.from_vectorstore(store, documents, alpha=1.0)
    queries = [document.page_content for document in documents]
    found = [retriever.invoke(query) for query in queries]
    assert [*map(ids, found)] == [ids(own.invoke(query)) for query in queries]
    assert retriever.batch(queries) == await retriever.abatch(queries) == found


def test_a_filled_store_is_read_for_bm25(store: VectorStore, documents: list[Document]) -> None:
    """What it loses before the first query is not found."""
    filled = CAUSRetriever.from_vectorstore(store, k=14, variant="okapi")
    store.delete(["d1"])
    given = CAUSRetriever.from_vectorstore(store, documents, k=14, variant="okapi")
    assert {*ids(filled.invoke(QUERY))} == {*ids(given.invoke(QUERY))} == {*ids(documents)} - {"d1"}
    filled.add_documents([Document("swish", id="new")])
    assert "new" in ids(filled.invoke("swish"))


def test_documents_are_split_into_words_once(store: VectorStore) -> None:
    """And not for every question."""
    split: list[str] = []

    def words(text: str) -> list[str]:
        split.append(text)
        return text.split()

    retriever = CAUSRetriever.from_vectorstore(store, tokenizer=words)
    retriever.invoke(QUERY)
    split.clear()
    retriever.invoke("pool")
    assert {*split} == {"pool"}


async def test_langchains_indexing_keeps_both_legs_in_step(
    store: VectorStore, documents: list[Document]
) -> None:
    """Over a store that is filled; what has changed is replaced, what is gone is deleted."""
    retriever = CAUSRetriever.from_vectorstore(store, k=20, alpha=0.0)
    manager = InMemoryRecordManager("corpus")
    manager.create_schema()

    async def indexed(*texts: str) -> set[str]:
        added = [Document(text, metadata={"source": text[0]}) for text in texts]
        options = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
        await aindex(added, manager, retriever, **options)
        assert index(added, manager, retriever, **options)["num_skipped"] == len(texts)
        found = retriever.invoke("swish selu gelu")
        assert len(found) == len(documents) + 2
        assert len(store.get_by_ids([str(each.id) for each in found])) == len(found)
        return {d.page_content for d in found if d.metadata["posrag"]["sparse"]}

    assert await indexed("swish one", "gelu two") == {"swish one", "gelu two"}
    assert await indexed("selu one", "gelu two") == {"selu one", "gelu two"}


def test_a_filter_reaches_documents_beyond_what_faiss_would_look_at(
    embeddings: Embeddings,
) -> None:
    documents = [Document(f"number {i}", id=str(i), metadata={"odd": i % 2}) for i in range(60)]
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=30)
    assert len(retriever.invoke("absent", filter={"odd": 1})) == 30


def test_documents_without_ids_are_those_of_the_store(embeddings: Embeddings) -> None:
    """By their text, also where the store changed their metadata, as Chroma does."""
    documents = [Document(text, metadata={"page": 1, "of": None}) for text in ("relu", "pool")]
    stored = [Document(each.page_content, metadata={"page": 1.0}) for each in documents]
    store = InMemoryVectorStore.from_documents(stored, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    found = {document.page_content: document.id for document in retriever.invoke("relu")}
    assert found == {each["text"]: name for name, each in store.store.items()}
    retriever.upsert([Document("prelu", id=found["relu"])])
    texts = [document.page_content for document in retriever.invoke("relu")]
    assert sorted(texts) == ["pool", "prelu"]
    retriever.delete([found["relu"]])
    assert [document.page_content for document in retriever.invoke("relu")] == ["pool"]


def test_a_bm25_retriever_keeps_its_scores(store: VectorStore, documents: list[Document]) -> None:
    bm25 = BM25Retriever.from_documents(documents, preprocess_func=str.split)
    retriever = CAUSRetriever.from_vectorstore(store, bm25, k=14)
    expected = dict(zip(ids(documents), bm25.vectorizer.get_scores(QUERY.split()), strict=True))
    for document in retriever.invoke(QUERY):
        score = document.metadata["posrag"]["sparse"]
        assert score == pytest.approx(expected[document.id], abs=1e-9)


KNOWN = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
PLUS = BM25Retriever(vectorizer=BM25Plus([["relu"]]), docs=[Document("relu")])


@pytest.mark.parametrize(
    ("store", "sparse", "options", "told"),
    [
        (Bare(), None, {}, r"Bare does not list its documents.*sparse=documents"),
        (Bare(), [], {"rescore": True}, "Bare has no embeddings"),
        (Bare(), [], {"higher_is_better": None}, "Bare is better is not known: pass higher_is_b"),
        (Unscored(), [], {}, "Unscored has no similarity_search_with_score"),
        (KNOWN, BM25Okapi([["a"]]), {}, "sparse= takes documents, a BM25Retriever or"),
        (KNOWN, Document("relu"), {}, "sparse must be a list, got the Document"),
        (KNOWN, PLUS, {}, "only those with BM25Okapi are taken, got BM25Plus"),
    ],
)
def test_what_cannot_be_fused_is_named(
    store: VectorStore, sparse: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        CAUSRetriever.from_vectorstore(store, sparse, **{"higher_is_better": True, **options})


async def test_replacing_a_document(documents: list[Document], embeddings: Embeddings) -> None:
    """FAISS cannot, and nothing has changed then."""
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20)
    new, before = [Document("swish", id="d0")], retriever.invoke(QUERY)
    told = r"FAISS cannot replace documents: delete \['d0'\]"
    with pytest.raises(ValueError, match=told):
        retriever.add_documents(new)
    with pytest.raises(ValueError, match=told):
        await retriever.aadd_documents(new)
    assert retriever.invoke(QUERY) == before


class Awaited(InMemoryVectorStore):
    """Has no synchronous method, as a store over an asynchronous connection."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("this method must be awaited")

    add_documents = add_texts = delete = get_by_ids = _refuse  # type: ignore[assignment]
    similarity_search = similarity_search_with_score = _refuse

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        assert ids, "Chroma raises for none"
        return super().get_by_ids(ids)

    async def adelete(self, ids: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        super().delete(ids)

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        vector = await self.embedding.aembed_query(query)
        return self.similarity_search_with_score_by_vector(vector, k, **kwargs)


async def test_a_store_that_can_only_be_awaited(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """And is not asked for no ids."""
    retriever = CAUSRetriever.from_vectorstore(Awaited(embeddings), [], k=20)
    assert await retriever.aadd_documents(documents) == ids(documents)
    assert (await retriever.aupsert([Document("swish", id="a")]))["succeeded"] == ["a"]
    assert (await retriever.aupsert([Document("gelu", id="a")]))["succeeded"] == ["a"]
    found = await retriever.ainvoke("gelu", filter=lambda metadata: metadata.get("page") != 1)
    assert {*ids(found)} == {"a", *ids(documents)} - {"d1"}
    assert await retriever.abatch(["gelu"]) == [await retriever.ainvoke("gelu")]
    assert (await retriever.adelete(["a", "d1", "none"]))["succeeded"] == ["a", "d1"]
    assert await retriever.aget(["a", "d1", "d2"]) == documents[2:3]
    assert await retriever.aget([]) == await retriever.aadd_documents([]) == []


async def test_an_empty_store_answers_a_filter_and_any_depth(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """FAISS makes room for all it is asked for."""
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    assert len(await retriever.ainvoke(QUERY, k=2**31, filter={"lang": "en"})) == 7
    retriever.delete([str(document.id) for document in documents])
    for where in (None, {"lang": "en"}):
        assert retriever.invoke(QUERY, filter=where) == []
        assert await retriever.ainvoke(QUERY, filter=where) == []


def test_what_has_no_id_is_not_taken_for_deleted(embeddings: Embeddings) -> None:
    """Also where the store finds nothing but a document that was added with an id."""
    store = InMemoryVectorStore.from_texts(["relu relu"], embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, [Document("relu relu")], k=1, alpha=0.0)
    retriever.add_documents([Document("relu", id="a")])
    (found,) = retriever.invoke("relu", fetch_k=1)
    assert found.page_content == "relu relu"


def test_a_store_that_refuses_to_delete_keeps_both_legs(
    documents: list[Document], embeddings: Embeddings
) -> None:
    class Stubborn(InMemoryVectorStore):
        def delete(self, ids: Any = None, **kwargs: Any) -> bool:  # type: ignore[override]
            return False

    store = Stubborn.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20)
    with pytest.raises(RuntimeError, match="Stubborn did not delete"):
        retriever.delete(["d1"])
    assert len(retriever.invoke(QUERY)) == 14
