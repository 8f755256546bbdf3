"""A vector store of LangChain's as the dense leg; see the contract and the core's engines, too."""

import asyncio
import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import FAISS
from langchain_community.vectorstores.utils import DistanceStrategy
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from rank_bm25 import BM25Okapi

from langchain_posrag import CAUSRetriever
from shared_core import BM25Index

from .conftest import WORDS

QUERY = "the relu layer"


class UnitEmbedding(DeterministicFakeEmbedding):
    """Of length one, so that distance, inner product and cosine agree."""

    def embed_query(self, text: str) -> list[float]:
        vector = np.array(super().embed_query(text))
        return (vector / np.linalg.norm(vector)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class Bare(VectorStore):
    """A store of the oldest kind: distances, no ids, no get, takes any filter and ignores it."""

    def __init__(self, found: Sequence[tuple[Document, float]]) -> None:
        self.found, self.filters = found, []

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> "Bare":
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: object = None
    ) -> list[tuple[Document, float]]:
        self.filters.append(filter)
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


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def details(documents: list[Document]) -> list[dict[str, Any]]:
    return [document.metadata["posrag"] for document in documents]


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


def test_each_leg_has_its_score_of_what_the_other_alone_finds(
    store: VectorStore, documents: list[Document]
) -> None:
    """BM25's is exact; that of the store is the lowest, in the direction of its scores."""
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    exact = BM25Index.from_texts([document.page_content for document in documents])
    scores = dict(zip(ids(documents), exact.scores("number layer").tolist(), strict=True))
    found = retriever.invoke("number layer", k=3, fetch_k=3, alpha=1.0)
    assert [detail["dense_rank"] for detail in details(found)] == [0, 1, 2]
    for document in found:
        assert document.metadata["posrag"]["sparse"] == pytest.approx(scores[document.id]) != 0
    compared = 0
    for word in WORDS:
        ((hit, score),) = store.similarity_search_with_score(f"beside {word}", k=1)
        (best,) = retriever.invoke(f"beside {word}", k=1, fetch_k=1, alpha=0.0)
        if best.id != hit.id:
            assert abs(best.metadata["posrag"]["dense"]) == pytest.approx(abs(float(score)))
            compared += 1
    assert compared > 0


def test_a_document_only_the_store_has_is_scored_by_the_statistics_of_the_others(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents[1:], k=14)
    statistics = BM25Index.from_texts([document.page_content for document in documents[1:]])
    (expected,) = statistics.score_texts("conv layer", [documents[0].page_content])

    found = {document.id: document for document in retriever.invoke("conv layer")}

    assert found["d0"].metadata["posrag"]["sparse"] == pytest.approx(expected)


@pytest.mark.parametrize("where", [{"lang": "en"}, lambda metadata: metadata["lang"] == "en"])
async def test_a_filter_holds_in_both_legs(
    store: VectorStore, documents: list[Document], where: Any
) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=14)

    found = retriever.invoke("pool layer", filter=where, fetch_k=1000)

    assert {document.metadata["lang"] for document in found} == {"en"}
    assert len(found) == 7
    assert await retriever.ainvoke("pool layer", filter=where, fetch_k=1000) == found
    retriever.delete(["d1"])
    retriever.add_documents([Document("pool layer", id="new", metadata={"lang": "en"})])
    changed = retriever.invoke("pool layer", filter=where)
    assert {"new", *ids(found)} - {"d1"} == set(ids(changed))
    assert details(changed)[0]["sparse_norm"] > 0


def test_a_filter_reaches_documents_beyond_what_faiss_would_look_at(
    embeddings: Embeddings,
) -> None:
    documents = [
        Document(f"number {i}", id=str(i), metadata={"odd": i % 2, "n": i}) for i in range(60)
    ]
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=30)

    assert len(retriever.invoke("absent", filter={"odd": 1})) == 30


def test_a_filter_holds_even_if_the_store_ignores_it(documents: list[Document]) -> None:
    store = Bare([(document, 0.5) for document in documents])
    retriever = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False, k=14)
    found = retriever.invoke(QUERY, filter={"lang": ["en"]})
    assert {document.metadata["lang"] for document in found} == {"en"}
    assert store.filters == [{"lang": "en"}]


def test_documents_meet_those_of_the_store_by_their_text(embeddings: Embeddings) -> None:
    """Where one side has no ids, and the other changed metadata, as Chroma does."""
    documents = [Document(text, metadata={"page": 1, "of": None}) for text in ("relu", "pool")]
    stored = [Document(document.page_content, metadata={"page": 1.0}) for document in documents]
    for store in (
        InMemoryVectorStore.from_documents(stored, embeddings),
        FAISS.from_documents(stored, embeddings),
    ):
        found = CAUSRetriever.from_vectorstore(store, documents).invoke("relu")
        assert sorted(document.page_content for document in found) == ["pool", "relu"]
        assert all(document.id for document in found)


def test_by_the_id_of_the_store_a_document_without_one_is_replaced_and_deleted(
    embeddings: Embeddings,
) -> None:
    documents = [Document("the price is 10 euro"), Document("opening hours")]
    store = InMemoryVectorStore.from_documents(copy.deepcopy(documents), embeddings)
    named = next(name for name, each in store.store.items() if "price" in each["text"])
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    retriever.upsert([Document("the price is 20 euro", id=named)])
    texts = [document.page_content for document in retriever.invoke("price")]
    assert sorted(texts) == ["opening hours", "the price is 20 euro"]
    retriever.delete([named])
    assert [document.page_content for document in retriever.invoke("price")] == ["opening hours"]


def test_a_bm25_retriever_keeps_its_scores(store: VectorStore, documents: list[Document]) -> None:
    bm25 = BM25Retriever.from_documents(documents, preprocess_func=str.split)
    retriever = CAUSRetriever.from_vectorstore(store, bm25, k=14)
    expected = dict(zip(ids(documents), bm25.vectorizer.get_scores(QUERY.split()), strict=True))

    for document in retriever.invoke(QUERY):
        score = document.metadata["posrag"]["sparse"]
        assert score == pytest.approx(expected[document.id], abs=1e-9)


def test_what_cannot_be_a_sparse_leg_is_named(documents: list[Document]) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    for sparse in (BM25Okapi([["a"]]), 3, "text", documents[0]):
        with pytest.raises(ValueError, match=r"sparse|documents must be a list"):
            CAUSRetriever.from_vectorstore(store, sparse)


def test_the_direction_of_an_unknown_store_has_to_be_given(documents: list[Document]) -> None:
    store = Bare([(document, at / 10) for at, document in enumerate(documents)])
    with pytest.raises(ValueError, match="Bare is better is not known: pass higher_is_better"):
        CAUSRetriever.from_vectorstore(store, documents)
    with pytest.raises(ValueError, match="higher_is_better must be True or False, got 'no'"):
        CAUSRetriever.from_vectorstore(store, documents, higher_is_better="no")
    for direction, best in ((False, "d0"), (True, "d13")):
        retriever = CAUSRetriever.from_vectorstore(
            store, documents, higher_is_better=direction, alpha=1.0
        )
        assert retriever.invoke("x")[0].id == best


async def test_add_and_delete_reach_both_legs(store: VectorStore, embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, [], k=20)
    assert retriever.add_documents([Document("swish", id="a")]) == ["a"]
    assert await retriever.aadd_documents([Document("gelu", id="b")]) == ["b"]

    found = {document.id: document for document in retriever.invoke("swish gelu")}
    assert found["a"].metadata["posrag"]["sparse"] > 0 < found["b"].metadata["posrag"]["sparse"]
    assert ids(store.get_by_ids(["a", "b"])) == ids(retriever.get(["a", "b"])) == ["a", "b"]

    assert retriever.delete(["a", "unknown"])["succeeded"] == ["a"]
    assert (await retriever.adelete(["b", "d1"]))["num_deleted"] == 2
    assert not {"a", "b", "d1"} & set(ids(retriever.invoke("swish gelu")))
    assert store.get_by_ids(["a", "b", "d1"]) == retriever.get(["a", "b", "d1"]) == []


class Awaited(InMemoryVectorStore):
    """Has no synchronous method, as a store over an asynchronous connection."""

    @staticmethod
    def _refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("this method must be awaited")

    add_documents = add_texts = delete = get_by_ids = _refuse
    similarity_search = similarity_search_with_score = _refuse

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return super().get_by_ids(ids)

    async def adelete(self, ids: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        super().delete(ids)

    async def asimilarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        vector = await self.embedding.aembed_query(query)
        return self.similarity_search_with_score_by_vector(vector, k, **kwargs)


async def test_a_store_that_can_only_be_awaited(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = Awaited(embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, [], k=20)

    assert await retriever.aadd_documents(documents) == ids(documents)
    assert (await retriever.aupsert([Document("swish", id="a")]))["succeeded"] == ["a"]
    assert (await retriever.aupsert([Document("gelu", id="a")]))["succeeded"] == ["a"]
    assert [document.page_content for document in await retriever.aget(["a", "none"])] == ["gelu"]
    found = await retriever.ainvoke("gelu", filter=lambda metadata: metadata.get("page") != 1)
    assert {*ids(found)} == {"a", *ids(documents)} - {"d1"}
    assert await retriever.abatch(["gelu"]) == [await retriever.ainvoke("gelu")]
    assert (await retriever.adelete(["a", "d1", "none"]))["succeeded"] == ["a", "d1"]
    assert {*ids(await retriever.ainvoke("gelu"))} == {*ids(documents)} - {"d1"}
    assert await retriever.aget(["a", "d1", "d2"]) == documents[2:3]


async def test_a_store_is_not_asked_for_no_ids(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """Chroma raises."""

    class Strict(InMemoryVectorStore):
        def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
            if not ids:
                raise ValueError("Expected IDs to be a non-empty list, got 0 IDs in get.")
            return super().get_by_ids(ids)

        async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
            return self.get_by_ids(ids)

    retriever = CAUSRetriever.from_vectorstore(Strict(embeddings), [])

    assert len(retriever.add_documents([Document("swish")])) == 1
    assert len(await retriever.aadd_documents([Document("gelu")])) == 1
    assert retriever.get([]) == await retriever.aget([]) == []
    assert retriever.delete([]) == await retriever.adelete([])
    assert len(retriever.invoke("swish")) == 2


def test_a_store_that_cannot_search_with_scores_is_refused(documents: list[Document]) -> None:
    class Unscored(VectorStore):
        @classmethod
        def from_texts(cls, *args: Any, **kwargs: Any) -> "Unscored":
            raise NotImplementedError

        def similarity_search(self, *args: Any, **kwargs: Any) -> list[Document]:
            return documents

    class AwaitedAlone(Unscored):
        async def asimilarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            return [(document, 1.0) for document in documents]

    with pytest.raises(ValueError, match="Unscored has no similarity_search_with_score"):
        CAUSRetriever.from_vectorstore(Unscored(), documents, higher_is_better=True)
    retriever = CAUSRetriever.from_vectorstore(AwaitedAlone(), documents, higher_is_better=True)
    assert len(asyncio.run(retriever.ainvoke("relu"))) == 10
    with pytest.raises(
        NotImplementedError, match=r"AwaitedAlone .* only asynchronously: use ainvoke"
    ):
        retriever.invoke("relu")


def test_equal_scores_keep_the_order_of_the_store(documents: list[Document]) -> None:
    """With what only BM25 finds behind, though it was indexed first."""
    tied = Bare([(documents[at], 0.5) for at in (9, 2, 6)])
    for direction in (True, False):
        retriever = CAUSRetriever.from_vectorstore(
            tied, documents, higher_is_better=direction, alpha=1.0, k=4
        )
        *first, last = ids(retriever.invoke("conv"))
        assert first == ["d9", "d2", "d6"]
        assert last in ("d0", "d1")


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


def test_replacing_a_document(store: VectorStore, documents: list[Document]) -> None:
    """Where the store can; FAISS cannot, and nothing has changed then."""
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20)
    new, before = [Document("swish", id="d0")], retriever.invoke(QUERY)
    if isinstance(store, FAISS):
        with pytest.raises(ValueError, match=r"FAISS cannot replace documents: delete \['d0'\]"):
            retriever.add_documents(new)
        assert retriever.invoke(QUERY) == before
    else:
        retriever.add_documents(new)
        assert len(retriever.invoke(QUERY)) == 14
        assert retriever.get(["d0"])[0].page_content == "swish"
        assert "d0" not in ids(retriever.invoke("conv", k=2, fetch_k=2, alpha=0.0))


async def test_nothing_can_be_added(documents: list[Document], embeddings: Embeddings) -> None:
    """FAISS itself raises for no documents."""
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False)
    assert retriever.add_documents([]) == await retriever.aadd_documents([]) == []
    assert retriever.upsert([])["succeeded"] == []


async def test_nothing_is_half_added(documents: list[Document], embeddings: Embeddings) -> None:
    def tokenizer(text: str) -> list[str]:
        if text == "raise":
            raise RuntimeError("cannot split this")
        return text.split()

    class Failing(InMemoryVectorStore):
        def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
            raise ConnectionError("no store today")

        async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
            raise ConnectionError("no store today")

    down = Failing(embeddings)
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    unsplit = CAUSRetriever.from_vectorstore(store, documents, tokenizer=tokenizer, k=20)
    unstored = CAUSRetriever.from_vectorstore(down, documents, k=20)
    batch = [Document("fine", id="a"), Document("raise", id="b")]

    for retriever, error in ((unsplit, RuntimeError), (unstored, ConnectionError)):
        before = retriever.invoke("fine layer")
        with pytest.raises(error):
            retriever.add_documents(batch)
        with pytest.raises(error):
            await retriever.aadd_documents(batch)
        assert retriever.invoke("fine layer") == before
        assert retriever.get(["a", "b"]) == []
    with pytest.raises(ValueError, match="'a'"):
        unsplit.add_documents([batch[0], batch[0]])


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
    assert retriever.delete(["unknown"])["num_deleted"] == 0


def test_tracing_parameters_name_the_store(store: VectorStore, documents: list[Document]) -> None:
    params = CAUSRetriever.from_vectorstore(store, documents)._get_ls_params()

    assert params["ls_vector_store_provider"] == type(store).__name__
    assert params["ls_embedding_provider"] == "UnitEmbedding"


class Slow(InMemoryVectorStore):
    """What was sent is done; the answer takes a while."""

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> None:
        self.delete(ids)
        await asyncio.sleep(0.05)

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        added = self.add_documents(documents)
        await asyncio.sleep(0.05)
        return added


async def test_a_write_whose_caller_gives_up_reaches_both_legs(
    documents: list[Document], embeddings: Embeddings
) -> None:
    """A client that has gone away, or a time limit, leaves no document in one leg alone."""
    store = Slow.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=20, higher_is_better=True)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(retriever.adelete(["d0"]), 0.02)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(retriever.aadd_documents([Document("zebra", id="z")]), 0.02)
    for _ in range(200):
        found = {document.id: document for document in retriever.invoke("zebra")}
        if "z" in found and found["z"].metadata["posrag"]["sparse"] and "d0" not in found:
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail(f"one leg alone was changed: {[*found]}")
    assert ids(retriever.get(["d0", "z"])) == ["z"]
