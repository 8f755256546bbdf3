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


class Swish(UnitEmbedding):
    """Takes every query for the same."""

    def embed_query(self, text: str) -> list[float]:
        return super().embed_query("swish")


class Bare(Unscored):
    """A store of the oldest kind: distances, no ids, no get."""

    def __init__(self, found: Sequence[tuple[Document, float]]) -> None:
        self.found = found

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: object = None
    ) -> list[tuple[Document, float]]:

        return [*self.found][:k]


@pytest.fixture
def embeddings() -> Embeddings:
    return UnitEmbedding(size=16)


@pytest.fixture(params=["memory", "faiss_l2", "faiss_inner_product"])
def store(
    request: pytest.FixtureRequest, documents: list[Document], embeddings: Embeddings
) -> VectorStore:
    if request.param == "memory":
        return InMemoryVectorStore.from_documents(documents, embeddings)
    strategies = {
        "faiss_l2": DistanceStrategy.EUCLIDEAN_DISTANCE,
        "faiss_inner_product": DistanceStrategy.MAX_INNER_PRODUCT,
    }
    strategy = strategies[request.param]
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
    filled = CAUSRetriever.from_vectorstore(store, k=14, variant="okapi")
    given = CAUSRetriever.from_vectorstore(store, documents, k=14, variant="okapi")
    assert filled.invoke(QUERY) == given.invoke(QUERY)
    filled.add_documents([Document("swish", id="new")])
    store.delete(["d1"])
    assert {*ids(filled.invoke("swish", k=20))} == {"new", *ids(documents)} - {"d1"}


def test_what_a_store_loses_before_the_first_query_is_not_found(
    store: VectorStore, documents: list[Document]
) -> None:
    """As it was read out of the store, under its ids."""
    retriever = CAUSRetriever.from_vectorstore(store)
    store.delete([str(each.id) for each in documents])
    assert retriever.invoke(QUERY) == []


async def test_langchains_indexing_keeps_both_legs_in_step(
    store: VectorStore, documents: list[Document]
) -> None:
    """Over a store that is filled; what has changed is replaced, what is gone is deleted."""
    retriever = CAUSRetriever.from_vectorstore(store, k=20, alpha=0.0)
    manager = InMemoryRecordManager("corpus")
    manager.create_schema()

    async def indexed(*texts: str) -> tuple[int, int]:
        added = [Document(text, metadata={"source": text[0]}) for text in texts]
        options = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
        run = await aindex(added, manager, retriever, **options)
        found = index(added, manager, retriever, **options)
        assert found["num_skipped"] == len(texts)
        return run["num_added"], run["num_deleted"]

    def by_words(query: str) -> set[str]:
        found = retriever.invoke(query)
        assert len(found) == len(store.get_by_ids([str(each.id) for each in found]))
        return {d.page_content for d in found if d.metadata["posrag"]["sparse"]}

    assert await indexed("swish one", "gelu two") == (2, 0)
    assert by_words("swish gelu") == {"swish one", "gelu two"}
    assert await indexed("selu one", "gelu two") == (1, 1)
    assert by_words("swish selu gelu") == {"selu one", "gelu two"}
    assert len(retriever.invoke(QUERY)) == len(documents) + 2


async def test_rescored_what_bm25_alone_found_has_the_score_of_the_own_index(
    store: VectorStore, documents: list[Document], embeddings: Embeddings
) -> None:
    """By default it has the lowest of the store's, and says so."""
    own = CAUSRetriever.from_documents(documents, embeddings, fetch_k=3, k=3, alpha=0.0)
    options: dict[str, Any] = {"fetch_k": 3, "k": 3, "alpha": 0.0}
    floor = CAUSRetriever.from_vectorstore(store, documents, **options)
    exact = CAUSRetriever.from_vectorstore(store, documents, rescore=True, **options)
    query = "beside gru lstm adam"
    expected = {d.id: d.metadata["posrag"]["dense"] for d in own.invoke(query)}
    assert {d.metadata["posrag"]["dense_exact"] for d in floor.invoke(query)} >= {False}
    for found in (exact.invoke(query), await exact.ainvoke(query)):
        assert {d.metadata["posrag"]["dense_exact"] for d in found} == {True}
        dense = {d.id: d.metadata["posrag"]["dense"] for d in found}
        assert dense == pytest.approx(expected, abs=1e-5)


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


def test_what_has_no_id_is_not_taken_for_deleted(embeddings: Embeddings) -> None:
    """Also where the store finds nothing but a document that was added with an id."""
    documents = [Document(f"{word} layer") for word in ("relu", "pool", "conv")]
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=1, alpha=0.0)
    retriever.add_documents([Document("swish", id="a")])
    store.embedding = Swish(size=16)
    for document in documents:
        (found,) = retriever.invoke(document.page_content, fetch_k=1)
        assert found.page_content == document.page_content


def test_a_bm25_retriever_keeps_its_scores(store: VectorStore, documents: list[Document]) -> None:
    bm25 = BM25Retriever.from_documents(documents, preprocess_func=str.split)
    retriever = CAUSRetriever.from_vectorstore(store, bm25, k=14)
    expected = dict(zip(ids(documents), bm25.vectorizer.get_scores(QUERY.split()), strict=True))
    for document in retriever.invoke(QUERY):
        score = document.metadata["posrag"]["sparse"]
        assert score == pytest.approx(expected[document.id], abs=1e-9)


KNOWN = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
ONE = Document("relu")
PLUS = BM25Retriever(vectorizer=BM25Plus([["relu"]]), docs=[ONE])  # its formula is another


@pytest.mark.parametrize(
    ("store", "sparse", "options", "told"),
    [
        (Bare([]), None, {}, r"Bare does not list its documents.*sparse=documents"),
        (Bare([]), [], {"rescore": True}, "Bare has no embeddings"),
        (Bare([]), [], {"higher_is_better": "no"}, "better must be True or False, got 'no'"),
        (Bare([]), [], {"higher_is_better": None}, "Bare is better is not known: pass higher_is_b"),
        (Unscored(), [], {}, "Unscored has no similarity_search_with_score"),
        (KNOWN.as_retriever(), [], {}, "use a store that has it, as retriever.vectorstore"),
        (KNOWN, BM25Okapi([["a"]]), {}, "sparse= takes documents, a BM25Retriever or"),
        (KNOWN, BM25Retriever.from_documents([ONE]), {"tokenizer": list}, "already an index"),
        (KNOWN, PLUS, {}, "only those with BM25Okapi are taken, got BM25Plus"),
    ],
)
def test_what_cannot_be_fused_is_named(
    store: VectorStore, sparse: Any, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        CAUSRetriever.from_vectorstore(store, sparse, **{"higher_is_better": True, **options})


def test_the_direction_of_an_unknown_store_has_to_be_given(documents: list[Document]) -> None:
    store = Bare([(document, at / 10) for at, document in enumerate(documents)])
    for direction, best in ((False, "d0"), (True, "d13")):
        retriever = CAUSRetriever.from_vectorstore(
            store, documents, higher_is_better=direction, alpha=1.0
        )
        assert retriever.invoke("x")[0].id == best


async def test_replacing_a_document(store: VectorStore, documents: list[Document]) -> None:
    """Where the store can; FAISS cannot, and nothing has changed then."""
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20)
    new, before = [Document("swish", id="d0")], retriever.invoke(QUERY)
    if isinstance(store, FAISS):
        told = r"FAISS cannot replace documents: delete \['d0'\]"
        with pytest.raises(ValueError, match=told):
            retriever.add_documents(new)
        with pytest.raises(ValueError, match=told):
            await retriever.aadd_documents(new)
        assert retriever.invoke(QUERY) == before
    else:
        retriever.add_documents(new)
        assert len(retriever.invoke(QUERY)) == 14
        assert retriever.get(["d0"])[0].page_content == "swish"


class Awaited(InMemoryVectorStore):
    """Has no synchronous method, as a store over an asynchronous connection."""

    @staticmethod
    def _refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("this method must be awaited")

    add_documents = add_texts = delete = get_by_ids = _refuse
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
    assert [document.page_content for document in await retriever.aget(["a", "none"])] == ["gelu"]
    found = await retriever.ainvoke("gelu", filter=lambda metadata: metadata.get("page") != 1)
    assert {*ids(found)} == {"a", *ids(documents)} - {"d1"}
    assert await retriever.abatch(["gelu"]) == [await retriever.ainvoke("gelu")]
    assert (await retriever.adelete(["a", "d1", "none"]))["succeeded"] == ["a", "d1"]
    assert await retriever.aget(["a", "d1", "d2"]) == documents[2:3]
    assert await retriever.aget([]) == await retriever.aadd_documents([]) == []


async def test_a_store_may_search_with_scores_when_awaited_alone(
    documents: list[Document],
) -> None:
    class AwaitedAlone(Unscored):
        async def asimilarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            return [(document, 1.0) for document in documents]

    retriever = CAUSRetriever.from_vectorstore(AwaitedAlone(), documents, higher_is_better=True)
    assert len(await retriever.ainvoke("relu")) == 10


async def test_an_empty_store_answers_a_filter_and_any_depth(
    store: VectorStore, documents: list[Document]
) -> None:
    """FAISS makes room for all it is asked for."""
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    assert len(retriever.invoke(QUERY, k=2**31)) == len(documents)
    assert len(await retriever.ainvoke(QUERY, k=2**31, filter={"lang": "en"})) == 7
    retriever.delete([str(document.id) for document in documents])
    assert retriever.invoke(QUERY, filter={"lang": "en"}) == []
    assert await retriever.ainvoke(QUERY, filter={"lang": "en"}) == []


def test_a_store_that_refuses_to_delete_keeps_both_legs(
    documents: list[Document], embeddings: Embeddings
) -> None:
    class Stubborn(InMemoryVectorStore):
        def delete(self, ids: Any = None, **kwargs: Any) -> bool:  # type: ignore[override]
            return False

    store = Stubborn.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20)
    before = retriever.invoke(QUERY)
    with pytest.raises(RuntimeError, match="Stubborn did not delete"):
        retriever.delete(["d1"])
    assert retriever.invoke(QUERY) == before
