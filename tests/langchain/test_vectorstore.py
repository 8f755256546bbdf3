"""Somebody else's vector store as the dense leg."""

import asyncio
import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
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
from langchain_posrag.sparse_leg import SparseLeg
from langchain_posrag.vector_stores import direction_of_scores
from shared_core import BM25Index, tokenize
from shared_core.index.passage_rows import PassageRows
from shared_core.index.sparse.view import COMPACT
from shared_core.neighbour_spans import ChunkKeys

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

    def __init__(self, documents: list[Document], embeddings: Embeddings) -> None:
        texts = [document.page_content for document in documents]
        metadatas = [document.metadata for document in documents]
        self.inner = FAISS.from_texts(texts, embeddings, metadatas=metadatas)
        self.filters: list[object] = []

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> "Bare":
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: object = None
    ) -> list[tuple[Document, float]]:
        self.filters.append(filter)
        found = self.inner.similarity_search_with_score(query, k=k)
        return [(document.model_copy(update={"id": None}), score) for document, score in found]

    async def asimilarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        return self.similarity_search_with_score(*args, **kwargs)


@pytest.fixture
def embeddings() -> Embeddings:
    return UnitEmbedding(size=16)


@pytest.fixture(params=["memory", "faiss_l2", "faiss_inner_product"])
def store(
    request: pytest.FixtureRequest, documents: list[Document], embeddings: Embeddings
) -> VectorStore:
    return make_store(request.param, documents, embeddings)


def make_store(kind: str, documents: list[Document], embeddings: Embeddings) -> VectorStore:
    documents = copy.deepcopy(documents)
    if kind == "memory":
        return InMemoryVectorStore.from_documents(documents, embeddings)
    strategies = {
        "faiss_l2": DistanceStrategy.EUCLIDEAN_DISTANCE,
        "faiss_inner_product": DistanceStrategy.MAX_INNER_PRODUCT,
    }
    return FAISS.from_documents(documents, embeddings, distance_strategy=strategies[kind])


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def details(documents: list[Document]) -> list[dict[str, Any]]:
    return [document.metadata["posrag"] for document in documents]


@pytest.mark.parametrize("kind", ["memory", "faiss_l2", "faiss_inner_product"])
def test_both_legs_of_the_whole_corpus_give_the_order_of_the_own_index(
    kind: str, embeddings: Embeddings
) -> None:
    # An inner product of unit vectors is their cosine, and orders as their distance does.
    documents = [Document(f"{word} {i * 'layer '}", id=word) for i, word in enumerate(WORDS)]
    store = make_store(kind, documents, embeddings)
    own = CAUSRetriever.from_documents(documents, embeddings, psi="always", fusion="rrf")
    retriever = CAUSRetriever.from_vectorstore(store, documents, psi="always", fusion="rrf")

    for query in ("layer", "pool gru", ""):
        assert ids(retriever.invoke(query)) == ids(own.invoke(query))


def test_similarities_give_the_scores_of_the_own_index(
    documents: list[Document], embeddings: Embeddings
) -> None:
    own = CAUSRetriever.from_documents(documents, embeddings)
    for kind in ("memory", "faiss_inner_product"):
        store = make_store(kind, documents, embeddings)
        found = CAUSRetriever.from_vectorstore(store, documents).invoke(QUERY)

        expected = {document.id: document.metadata["score"] for document in own.invoke(QUERY)}
        assert {d.id: pytest.approx(d.metadata["score"], abs=1e-5) for d in found} == expected


async def test_sync_async_and_batch_agree(store: VectorStore, documents: list[Document]) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=6, fetch_k=6, psi="always")
    queries = [QUERY, "pool", "gru lstm"]
    expected = [retriever.invoke(query) for query in queries]

    assert [await retriever.ainvoke(query) for query in queries] == expected
    assert retriever.batch(queries) == expected
    assert await retriever.abatch(queries) == expected


def test_the_sparse_score_is_exact_for_what_the_store_alone_finds(
    store: VectorStore, documents: list[Document]
) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    exact = BM25Index.from_texts([document.page_content for document in documents])
    scores = dict(zip(ids(documents), exact.scores("number layer").tolist(), strict=True))

    found = retriever.invoke("number layer", k=3, fetch_k=3, alpha=1.0)

    assert [detail["dense_rank"] for detail in details(found)] == [0, 1, 2]
    for document in found:
        assert document.metadata["posrag"]["sparse"] == pytest.approx(scores[document.id]) != 0


def test_what_the_sparse_leg_alone_finds_stands_at_the_lowest_score_of_the_store(
    store: VectorStore, documents: list[Document]
) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, documents, alpha=0.0)
    sign = 1 if direction_of_scores(store) else -1
    compared = 0
    for word in WORDS:
        ((hit, score),) = store.similarity_search_with_score(f"beside {word}", k=1)
        (found,) = retriever.invoke(f"beside {word}", k=1, fetch_k=1)
        if found.id != hit.id:
            assert found.metadata["posrag"]["dense"] == pytest.approx(sign * float(score))
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


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"alpha": 1.5}, "1.5"),
        ({"filter": {"page": {"$gt": 3}}}, "page"),
        ({"filter": "lang"}, "lang"),
    ],
)
async def test_a_call_refuses_what_it_cannot_mean(
    store: VectorStore, documents: list[Document], options: dict[str, Any], named: str
) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, documents)

    with pytest.raises(ValueError, match=named):
        retriever.invoke(QUERY, **options)
    with pytest.raises(ValueError, match=named):
        await retriever.ainvoke(QUERY, **options)


def test_metadata_of_any_kind_tells_documents_apart(embeddings: Embeddings) -> None:
    documents = [Document("relu", metadata={1: {(0, n)}, "b": n}) for n in (1, 2)]
    store = Bare(documents, embeddings)

    found = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False).invoke("relu")

    assert sorted(document.metadata["b"] for document in found) == [1, 2]


def test_a_filter_reaches_documents_beyond_what_faiss_would_look_at(
    embeddings: Embeddings,
) -> None:
    documents = [
        Document(f"number {i}", id=str(i), metadata={"odd": i % 2, "n": i}) for i in range(60)
    ]
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, [], k=30)

    assert len(retriever.invoke("absent", filter={"odd": 1})) == 30


def test_a_filter_holds_even_if_the_store_ignores_it(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = Bare(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False, k=14)

    found = retriever.invoke(QUERY, filter={"lang": ["en"]})

    assert {document.metadata["lang"] for document in found} == {"en"}
    assert store.filters == [{"lang": "en"}]
    assert retriever.invoke(QUERY)
    assert store.filters[-1] is None


def test_without_ids_documents_are_told_apart_by_content_and_metadata(
    documents: list[Document], embeddings: Embeddings
) -> None:
    twins = [Document("relu", metadata={"n": n}) for n in (1, 2)]
    store = Bare([*documents, *twins], embeddings)
    named = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False, k=20)
    unnamed = CAUSRetriever.from_vectorstore(store, twins, higher_is_better=False, k=20)

    assert sorted(filter(None, ids(named.invoke(QUERY)))) == sorted(ids(documents))
    found = [document for document in unnamed.invoke(QUERY) if document.page_content == "relu"]
    assert sorted(document.metadata["n"] for document in found) == [1, 2]
    assert ids(found) == [None, None]


def test_documents_of_equal_text_and_other_ids_stay_two(embeddings: Embeddings) -> None:
    documents = [Document("relu", id="a"), Document("relu", id="b")]
    store = InMemoryVectorStore.from_documents(documents, embeddings)

    for known in (documents, documents[:1], documents[1:]):
        found = CAUSRetriever.from_vectorstore(store, known).invoke("relu")
        assert sorted(ids(found)) == ["a", "b"]


def test_documents_the_store_named_meet_those_without_a_name(embeddings: Embeddings) -> None:
    documents = [Document("relu"), Document("pool")]
    store = FAISS.from_documents(documents, embeddings)

    found = CAUSRetriever.from_vectorstore(store, documents).invoke("relu")

    assert len(found) == 2
    assert all(document.id for document in found)


def test_documents_meet_those_whose_metadata_the_store_changed(embeddings: Embeddings) -> None:
    """As it is by Chroma, which leaves out None; without this each is found twice."""
    documents = [Document(text, metadata={"page": 1, "of": None}) for text in ("relu", "pool")]
    stored = [Document(document.page_content, metadata={"page": 1.0}) for document in documents]
    store = InMemoryVectorStore.from_documents(stored, embeddings)

    found = CAUSRetriever.from_vectorstore(store, documents).invoke("relu")

    assert sorted(document.page_content for document in found) == ["pool", "relu"]
    assert all(document.id for document in found)


def test_the_store_and_the_caller_keep_what_is_theirs(
    store: VectorStore, documents: list[Document]
) -> None:
    before = copy.deepcopy(documents)
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    expected = retriever.invoke(QUERY)

    documents[1].metadata["tags"]["kind"].append("changed")
    for document in retriever.invoke(QUERY):
        document.metadata["tags"]["kind"].append("changed")

    assert retriever.invoke(QUERY) == expected
    assert sorted(store.get_by_ids(["d1", "d2"]), key=lambda d: d.id) == before[1:3]


def test_a_bm25_retriever_keeps_its_scores(store: VectorStore, documents: list[Document]) -> None:
    bm25 = BM25Retriever.from_documents(documents, preprocess_func=str.split)
    retriever = CAUSRetriever.from_vectorstore(store, bm25, k=14)
    expected = dict(zip(ids(documents), bm25.vectorizer.get_scores(QUERY.split()), strict=True))

    for document in retriever.invoke(QUERY):
        score = document.metadata["posrag"]["sparse"]
        assert score == pytest.approx(expected[document.id], abs=1e-9)


def test_an_index_and_its_documents_make_a_sparse_leg(
    store: VectorStore, documents: list[Document]
) -> None:
    texts = [document.page_content for document in documents]
    okapi = BM25Okapi([tokenize(text) for text in texts])
    given = CAUSRetriever.from_vectorstore(store, documents, variant="okapi")
    converted = CAUSRetriever.from_vectorstore(
        store, SparseLeg.from_rank_bm25(okapi, documents, tokenizer=tokenize)
    )
    paired = CAUSRetriever.from_vectorstore(
        store, SparseLeg(BM25Index.from_texts(texts, variant="okapi"), documents)
    )

    assert ids(given.invoke(QUERY)) == ids(converted.invoke(QUERY)) == ids(paired.invoke(QUERY))


@pytest.mark.parametrize("sparse", [BM25Okapi([["a"]]), BM25Index(), 3, "text"])
def test_what_cannot_be_a_sparse_leg_is_named(store: VectorStore, sparse: object) -> None:
    with pytest.raises(ValueError, match="sparse="):
        CAUSRetriever.from_vectorstore(store, sparse)


def test_a_sparse_leg_needs_all_its_documents(documents: list[Document]) -> None:
    with pytest.raises(ValueError, match="has 1 rows, got 14 documents"):
        SparseLeg(BM25Index.from_texts(["a"]), documents)
    with pytest.raises(ValueError, match="'d0'"):
        SparseLeg.from_documents([documents[0], documents[0]])


def test_a_sparse_leg_refuses_an_index_whose_rows_have_gaps(documents: list[Document]) -> None:
    """As many documents as rows that are left: each would stand for another's row."""
    bm25 = BM25Index.from_texts(["first", *(document.page_content for document in documents)])
    bm25.delete([0])
    with pytest.raises(ValueError, match="1 deleted rows"):
        SparseLeg(bm25, documents)
    bm25.compact()
    assert SparseLeg(bm25, documents).search(documents[3].page_content, 1, None)[0].id == "d3"


def test_the_direction_of_an_unknown_store_has_to_be_given(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = Bare(documents, embeddings)
    with pytest.raises(ValueError, match="Bare is better is not known: pass higher_is_better"):
        CAUSRetriever.from_vectorstore(store, documents)

    for word in ("no", "distance", 0):
        with pytest.raises(
            ValueError, match=f"higher_is_better must be True or False, got {word!r}"
        ):
            CAUSRetriever.from_vectorstore(store, documents, higher_is_better=word)  # type: ignore[arg-type]

    best = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=False, alpha=1.0)
    worst = CAUSRetriever.from_vectorstore(store, documents, higher_is_better=True, alpha=1.0)
    text = documents[4].page_content

    assert best.invoke(text)[0].page_content == text
    assert worst.invoke(text, k=14)[-1].page_content == text


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


async def test_what_is_awaited_is_refused_alike(store: VectorStore) -> None:
    retriever = CAUSRetriever.from_vectorstore(store, [])
    with pytest.raises(ValueError, match="needs ids="):
        await retriever.adelete()
    with pytest.raises(ValueError, match="got the string 'd1'"):
        await retriever.adelete("d1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got the string 'd1'"):
        await retriever.aget("d1")


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

    for direction in (None, True):
        with pytest.raises(ValueError, match="Unscored has no similarity_search_with_score"):
            CAUSRetriever.from_vectorstore(Unscored(), documents, higher_is_better=direction)
    retriever = CAUSRetriever.from_vectorstore(AwaitedAlone(), documents, higher_is_better=True)
    assert len(asyncio.run(retriever.ainvoke("relu"))) == 10
    with pytest.raises(
        NotImplementedError, match=r"AwaitedAlone .* only asynchronously: use ainvoke"
    ):
        retriever.invoke("relu")


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_equal_scores_keep_the_order_of_the_store(
    documents: list[Document], higher_is_better: bool
) -> None:
    """With what only the sparse leg finds behind, though it was indexed first."""

    class Tied(Bare):
        def __init__(self) -> None:
            pass

        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            return [(documents[at], 0.5) for at in (9, 2, 6)]

    retriever = CAUSRetriever.from_vectorstore(
        Tied(), documents, higher_is_better=higher_is_better, alpha=1.0, k=4
    )

    assert ids(retriever.invoke("conv"))[:3] == ["d9", "d2", "d6"]
    assert retriever.invoke("conv")[3].id in ("d0", "d1")


def test_deleting_by_the_stores_id_finds_the_document_without_one(
    embeddings: Embeddings,
) -> None:
    documents = [Document("relu"), Document("pool")]
    store = FAISS.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    (named,) = [d.id for d in retriever.invoke("relu") if d.page_content == "relu"]

    retriever.delete([named])

    assert [document.page_content for document in retriever.invoke("relu")] == ["pool"]


def test_replacing_by_the_stores_id_finds_the_document_without_one(
    embeddings: Embeddings,
) -> None:
    documents = [Document("the price is 10 euro"), Document("opening hours")]
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    (named,) = [d.id for d in retriever.invoke("price") if "price" in d.page_content]

    retriever.upsert([Document("the price is 20 euro", id=named)])

    texts = [document.page_content for document in retriever.invoke("price")]
    assert sorted(texts) == ["opening hours", "the price is 20 euro"]
    retriever.delete([named])
    assert [document.page_content for document in retriever.invoke("price")] == ["opening hours"]


def test_one_id_is_not_taken_for_several(store: VectorStore, documents: list[Document]) -> None:
    """Its letters may be the ids of others."""
    retriever = CAUSRetriever.from_vectorstore(store, documents)
    with pytest.raises(ValueError, match=r"got the string 'd1'; give \['d1'\]"):
        retriever.delete("d1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="got the string 'd1'"):
        retriever.get("d1")


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


def test_a_copy_is_apart_from_the_original(store: VectorStore, documents: list[Document]) -> None:
    """The sparse leg, also after deletions."""
    leg = SparseLeg.from_documents(documents)
    leg.delete(documents[:3])
    for copied in (copy.deepcopy(leg), pickle.loads(pickle.dumps(leg))):
        assert copied.search(QUERY, 20, None) == leg.search(QUERY, 20, None)
        copied.delete(documents)
        assert copied.search(QUERY, 20, None) == []
    assert leg.search(QUERY, 20, None)


def test_a_copy_is_made_while_another_adds() -> None:
    """It neither fails nor grows with the original."""
    leg = SparseLeg.from_documents([Document(f"start {i}", id=f"s{i}") for i in range(5000)])
    _, (bm25, _) = leg.__reduce__()
    known = len(bm25.lexicon)
    done = threading.Event()

    def add() -> None:
        for i in count():
            if done.is_set():
                return
            leg.add([Document(" ".join(f"w{i}x{j}" for j in range(50)), id=str(i))])

    with ThreadPoolExecutor(1) as threads:
        adding = threads.submit(add)
        try:
            copies = [copy.copy(leg), copy.deepcopy(leg), pickle.loads(pickle.dumps(leg))]
        finally:
            done.set()
        adding.result()
    for copied in copies:
        copied.add([Document("mish", id="only")])
        assert [passage.id for passage in copied.search("mish", 5, None)] == ["only"]
        assert [passage.id for passage in copied.search("4999", 5, None)] == ["s4999"]
    assert leg.search("mish", 5, None) == []
    assert leg.get("0") is not None
    assert len(bm25.lexicon) == known


def test_replacing_a_document(documents: list[Document], embeddings: Embeddings) -> None:
    new = [Document("swish", id="d0")]
    memory = CAUSRetriever.from_vectorstore(
        make_store("memory", documents, embeddings), documents, k=20
    )
    faiss = CAUSRetriever.from_vectorstore(
        make_store("faiss_l2", documents, embeddings), documents, k=20
    )
    before = faiss.invoke(QUERY)

    memory.add_documents(new)
    with pytest.raises(ValueError, match=r"FAISS cannot replace documents: delete \['d0'\] first"):
        faiss.add_documents(new)

    assert len(memory.invoke(QUERY)) == 14
    assert memory.get(["d0"])[0].page_content == "swish"
    assert "d0" not in ids(memory.invoke("conv", k=2, fetch_k=2, alpha=0.0))
    assert faiss.invoke(QUERY) == before


def test_a_document_that_is_replaced_is_there_until_the_new_one_is(
    documents: list[Document], embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a search between the two changes would find neither."""
    given = [*documents, Document("mish", id="only")]
    store = make_store("memory", given, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, given, k=1, alpha=0.0)
    found: list[Document] = []
    add = SparseLeg.add

    def searched_before(*args: Any, **options: Any) -> None:
        found.extend(retriever.invoke("mish"))
        add(*args, **options)

    monkeypatch.setattr(SparseLeg, "add", searched_before)
    retriever.add_documents([Document("mish mash", id="only")])
    found += retriever.invoke("mish")
    assert ids(found) == ["only", "only"]
    assert all(document.metadata["posrag"]["sparse"] > 0 for document in found)


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


async def test_an_added_text_is_split_once(embeddings: Embeddings) -> None:
    split: list[str] = []

    def tokenizer(text: str) -> list[str]:
        split.append(text)
        return text.split()

    store = InMemoryVectorStore(embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, [], tokenizer=tokenizer)

    retriever.add_documents([Document("swish", id="a")])
    await retriever.aadd_documents([Document("gelu", id="b"), Document("relu", id="a")])

    assert split == ["swish", "gelu", "relu"]
    found = retriever.invoke("relu", alpha=0.0)
    assert [document.page_content for document in found] == ["relu", "gelu"]


def test_what_was_checked_is_added_whatever_came_between(documents: list[Document]) -> None:
    """Another's documents, and the dropping of deleted rows."""
    leg = SparseLeg.from_documents(documents)
    late = [Document("swish gelu", id="late"), Document("pool swish")]
    passing = [Document(f"mish {i}", id=f"x{i}") for i in range(COMPACT + 100)]

    checked = leg.check(late)
    leg.add(passing)
    leg.delete(passing)
    leg.add([late[0].model_copy(update={"id": "renamed"}), late[1]], checked)

    assert [passage.id for passage in leg.search("gelu", 20, None)] == ["renamed"]
    anew = SparseLeg.from_documents([*documents, *late])
    for query in ("swish", "pool layer", "mish"):
        assert [p.text for p in leg.search(query, 20, None)] == [
            p.text for p in anew.search(query, 20, None)
        ]
    leg.delete([late[1]])
    assert [passage.text for passage in leg.search("swish", 20, None)] == ["swish gelu"]


def test_replacing_the_greater_part_drops_the_deleted_rows() -> None:
    old = [Document(f"old {i}", id=str(i)) for i in range(COMPACT)]
    new = [Document(f"new {i}", id=str(i)) for i in range(COMPACT)]
    leg = SparseLeg.from_documents(old)

    for _ in range(3):
        leg.add(new)

    assert leg.search("old", 1, None) == []
    for query in ("7", "999"):
        assert [(p.id, p.text) for p in leg.search(query, 5, None)] == [(query, f"new {query}")]
    assert {p.id for p in leg.search("new", 5, lambda metadata: True)} <= {str(i) for i in range(5)}


def test_dropped_rows_are_freed_even_where_neighbours_were_read() -> None:
    class Held:
        def __deepcopy__(self, memo: object) -> "Held":
            return self

    held = Held()
    seen = weakref.ref(held)
    documents = [Document(f"old {i}", metadata={"start_index": i}) for i in range(COMPACT)]
    documents[7].metadata["held"] = held
    leg = SparseLeg.from_documents(documents)
    leg.neighbours(ChunkKeys(), None)
    leg.delete(documents)
    del documents, held
    gc.collect()

    assert seen() is None


def test_metadata_that_cannot_be_told_leave_the_leg_as_it_was(documents: list[Document]) -> None:
    class Untold:
        def __repr__(self) -> str:
            raise RuntimeError("no name")

    circle: dict[str, Any] = {}
    circle["itself"] = circle
    leg = SparseLeg.from_documents(documents)

    with pytest.raises(RuntimeError, match="no name"):
        leg.add([Document("swish", id="a"), Document("swish", metadata={"of": Untold()})])

    assert leg.search("swish", 5, None) == []
    leg.add([Document("swish", id="a", metadata=circle)])
    assert [passage.id for passage in leg.search("swish", 5, None)] == ["a"]


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


def test_readers_and_a_writer(documents: list[Document], embeddings: Embeddings) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=5, alpha=0.0)
    done = threading.Event()

    def read() -> int:
        odd = 0
        while not done.is_set():
            found = retriever.invoke("relu", filter={"lang": "en"}, fetch_k=5)
            odd += found[0].id != "d1"
        return odd

    with ThreadPoolExecutor(3) as threads:
        reading = [threads.submit(read) for _ in range(2)]
        for i in range(60):
            retriever.add_documents([Document(f"swish {i}", id=f"x{i}", metadata={"lang": "en"})])
            if i % 2:
                retriever.delete([f"x{i}"])
        done.set()
        assert [future.result() for future in reading] == [0, 0]


def test_a_sparse_leg_forgets_what_it_replaces_and_deletes(documents: list[Document]) -> None:
    leg = SparseLeg.from_documents(documents)

    leg.add([Document("swish", id="d0")])
    leg.delete([documents[2], Document("unknown", id="unknown")])

    seen: list[object] = []
    leg.search("pool", 20, lambda metadata: bool(seen.append(metadata.get("page"))))
    assert 0 not in seen
    assert 2 not in seen
    assert [passage.id for passage in leg.search("conv", 20, None)] == ["d1"]
    assert [passage.id for passage in leg.search("swish", 20, None)] == ["d0"]
    assert [passage.id for passage in leg.search("pool", 20, None)] == ["d3"]


def test_documents_may_come_and_go_for_long(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    leg = SparseLeg.from_documents(documents)
    retriever = CAUSRetriever.from_vectorstore(store, leg, k=20)
    before = retriever.invoke(QUERY)
    passing = [Document(f"relu {i}", id=f"x{i}") for i in range(1100)]

    leg.add(passing)
    leg.delete(passing)

    assert retriever.invoke(QUERY) == before
    leg.add(passing[:1])
    assert leg.search("relu", 10, None)[0].id == "x0"


def test_tracing_parameters_name_the_store(store: VectorStore, documents: list[Document]) -> None:
    params = CAUSRetriever.from_vectorstore(store, documents)._get_ls_params()

    assert params["ls_vector_store_provider"] == type(store).__name__
    assert params["ls_embedding_provider"] == "UnitEmbedding"


def state_of(leg: SparseLeg, ids: Sequence[str]) -> list[object]:
    found = [passage.id for passage in leg.search("the relu layer", 20, None)]
    return [leg.get(id_) for id_ in ids] + [found]


@pytest.mark.parametrize(
    ("part", "step"),
    [(SparseLeg, "_remove"), (PassageRows, "append"), (SparseLeg, "_tidy")],
    ids=["remove", "append", "tidy"],
)
def test_an_interrupted_change_leaves_a_sparse_leg_as_it_was(
    part: type, step: str, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the index and the documents it ranks would put them out of step for good."""
    ids = [*(str(document.id) for document in documents), "new"]
    leg = SparseLeg.from_documents(documents)
    before, done = state_of(leg, ids), getattr(part, step)

    def interrupted(self: object, *args: Any) -> None:
        monkeypatch.undo()  # what mends it is not interrupted again
        done(self, *args)
        raise KeyboardInterrupt

    added = [documents[0].model_copy(update={"page_content": "another relu"})]
    added.append(Document("the relu layer", id="new"))
    monkeypatch.setattr(part, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        leg.add(added)
    assert state_of(leg, ids) == before
    leg.add(added)
    leg.delete([documents[1]])
    rest = [*documents[2:], *added]
    assert state_of(leg, ids) == state_of(SparseLeg.from_documents(rest), ids)


@pytest.mark.parametrize("change", ["upsert", "compact"])
def test_documents_that_change_while_a_search_fuses_come_once(
    change: str, documents: list[Document], embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are given to others meanwhile: no document is told apart by them."""
    many = [Document(f"filler {n}", id=f"f{n}") for n in range(COMPACT)] + documents
    store = InMemoryVectorStore(embeddings)
    store.add_documents(many)
    retriever = CAUSRetriever.from_vectorstore(store, many, k=60, fetch_k=20)
    expected = {document.id for document in retriever.invoke(QUERY)}
    leg, identified = retriever.index.sparse, SparseLeg.identified  # type: ignore[union-attr]

    def meanwhile(self: SparseLeg, passage: Any) -> Any:
        found = identified(self, passage)
        if change == "upsert":
            leg.add([document for document in documents if document.id == passage.id])
        else:
            leg.delete(many[:COMPACT])
        return found

    monkeypatch.setattr(SparseLeg, "identified", meanwhile)
    found = [document.id for document in retriever.invoke(QUERY)]
    assert len(found) == len(set(found))
    assert {*found} == expected


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
    store = Slow(embeddings)
    store.add_documents(documents)
    retriever = CAUSRetriever.from_vectorstore(store, documents, k=3, higher_is_better=True)
    gone = str(documents[0].id)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(retriever.adelete([gone]), 0.02)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(retriever.aadd_documents([Document("zebra", id="z")]), 0.02)
    for _ in range(200):
        found = [document.id for document in retriever.get([gone, "z"])]
        if found == ["z"] and retriever.index.sparse.get("z"):  # type: ignore[union-attr]
            break
        await asyncio.sleep(0.01)
    assert retriever.index.sparse.get(gone) is None  # type: ignore[union-attr]
    assert retriever.index.sparse.get("z") is not None  # type: ignore[union-attr]
    assert found == ["z"]
