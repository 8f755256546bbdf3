"""Qdrant as the dense leg: it returns a document's id in the metadata, and none as its id."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_qdrant import QdrantVectorStore, RetrievalMode
from qdrant_client import models
from qdrant_client.models import Distance

from langchain_posrag import CAUSRetriever

WORDS = ["relu", "conv", "pool", "adam", "norm"]
QUERY = "the relu layer"
MODEL = DeterministicFakeEmbedding(size=16)


def named(word: str) -> str:
    return str(uuid5(NAMESPACE_URL, word))


DOCUMENTS = [
    Document(f"the {word} layer", metadata={"n": n, "word": word, "tags": [word]}, id=named(word))
    for n, word in enumerate(WORDS)
]


def filled(distance: Distance) -> QdrantVectorStore:
    return QdrantVectorStore.from_documents(
        DOCUMENTS,
        MODEL,
        ids=[document.id for document in DOCUMENTS],
        location=":memory:",
        distance=distance,
    )


@pytest.fixture
def store() -> Iterator[QdrantVectorStore]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of payload indexes, which it has none of in memory
        made = filled(Distance.COSINE)
        yield made
        made.client.close()


@pytest.fixture
def retriever(store: QdrantVectorStore) -> CAUSRetriever:
    return CAUSRetriever.from_vectorstore(store, DOCUMENTS, k=20)


def facts(documents: list[Document]) -> dict[str | None, tuple[str, Any]]:
    return {d.id: (d.page_content, d.metadata["n"]) for d in documents}


EXPECTED = facts(DOCUMENTS)


async def test_a_document_of_both_legs_comes_once(retriever: CAUSRetriever) -> None:
    """Under its id, with the metadata it was added with."""
    for found in (retriever.invoke(QUERY), await retriever.ainvoke(QUERY)):
        assert len(found) == len(DOCUMENTS)
        assert facts(found) == EXPECTED
        assert not any({"_id", "_collection_name"} & {*document.metadata} for document in found)


def test_a_filled_collection_is_read_for_bm25(store: QdrantVectorStore) -> None:
    """More than one page of it."""
    more = [Document(f"number {n}", metadata={"n": n}, id=named(str(n))) for n in range(1000)]
    store.add_documents(more)
    found = CAUSRetriever.from_vectorstore(store, k=2000)
    given = CAUSRetriever.from_vectorstore(store, [*DOCUMENTS, *more], k=2000)
    assert facts(found.invoke(QUERY)) == facts(given.invoke(QUERY))
    assert found.index.count() == given.index.count() == 1005


def test_a_collection_whose_ids_are_numbers(store: QdrantVectorStore) -> None:
    """As of those who filled it by Qdrant's client; Qdrant knows no text \"7\"."""
    vectors = MODEL.embed_documents(WORDS)
    points = [
        models.PointStruct(id=n, vector=vectors[n], payload={"page_content": word})
        for n, word in enumerate(WORDS)
    ]
    store.client.delete(store.collection_name, models.Filter())
    store.client.upsert(store.collection_name, points)
    retriever = CAUSRetriever.from_vectorstore(store, k=2, fetch_k=2, alpha=0.0)
    for n, word in enumerate(WORDS):
        assert retriever.invoke(word)[0].id == str(n)
    assert retriever.delete(["3", "9"])["succeeded"] == ["3"]
    assert {document.id for document in retriever.invoke("pool", k=9)} == {"0", "1", "2", "4"}


ONE = models.FieldCondition(key="metadata.n", match=models.MatchValue(value=1))


@pytest.mark.parametrize(
    ("where", "passing", "told"),
    [
        ({"n": 2}, [2], True),
        ({"n": [1, 2.0, 7], "word": ["conv", "adam"]}, [1], True),
        ({"n": True}, [1], True),
        ({"n": {"$gte": 1, "$lt": 3}}, [1, 2], True),
        (models.Filter(must=[ONE]), [1], True),
        ({"my-key": 1}, [], False),
        (lambda metadata: metadata["n"] > 2, [3, 4], False),
    ],
)
def test_filters_hold(
    retriever: CAUSRetriever,
    store: QdrantVectorStore,
    where: Any,
    passing: list[int],
    told: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In Qdrant's own words, as far as it has some; its own filters as they are."""
    asked: list[Any] = []
    search = store.client.query_points

    def query_points(*args: Any, **kwargs: Any) -> Any:
        asked.append(kwargs["query_filter"])
        return search(*args, **kwargs)

    monkeypatch.setattr(store.client, "query_points", query_points)
    found = retriever.invoke(QUERY, filter=where)
    assert sorted(document.metadata["n"] for document in found) == passing
    assert {isinstance(each, models.Filter) for each in asked} == {told}


@pytest.mark.parametrize("distance", [Distance.DOT, Distance.EUCLID])
def test_the_direction_of_its_scores_is_known(distance: Distance) -> None:
    """By the distance of the collection."""
    store = filled(distance)
    (nearest, _), *_ = store.similarity_search_with_score(QUERY, k=1)
    (best,) = CAUSRetriever.from_vectorstore(store, DOCUMENTS, alpha=1.0).invoke(QUERY, k=1)
    assert best.page_content == nearest.page_content
    store.client.close()


def test_the_scores_of_a_search_by_words_are_no_cosines(store: QdrantVectorStore) -> None:
    """Nor are those of a fusion: what is rescored is compared with its like."""
    for mode in RetrievalMode:
        store.retrieval_mode = mode
        engine: Any = CAUSRetriever.from_vectorstore(store, DOCUMENTS, rescore=True).index
        assert engine.cosines == (mode is RetrievalMode.DENSE)


@pytest.mark.parametrize("auto_id", [False, True])
def test_milvus_is_written_under_ids_that_it_takes(auto_id: bool) -> None:
    """It is not installed here: one of its name, which reads no document's id, stands in for it."""

    class Milvus(InMemoryVectorStore):
        get_by_ids, aget_by_ids = VectorStore.get_by_ids, VectorStore.aget_by_ids

        def add_documents(  # type: ignore[override]
            self, documents: list[Document], ids: list[str] | None = None
        ) -> list[Any]:
            made: list[Any] = [*range(len(documents))] if auto_id else ids or []
            super().add_documents(documents, ids=[*map(str, made)])
            return made

        def delete(self, ids: Any) -> None:  # type: ignore[override]
            assert {*map(type, ids)} == {int if auto_id else str}
            super().delete([*map(str, ids)])

    Milvus.__module__, Milvus.__qualname__ = "langchain_milvus.vectorstores.milvus", "Milvus"
    store: Any = Milvus(MODEL)
    store.auto_id = auto_id
    retriever = CAUSRetriever.from_vectorstore(store, [], higher_is_better=True)
    ids = retriever.add_documents([Document("one", id="7"), Document("two", id="8")])
    assert ids == (["0", "1"] if auto_id else ["7", "8"])
    assert {each.id for each in retriever.invoke("one")} == {*ids} == {*store.store}
    with pytest.raises(ValueError, match="Milvus cannot replace documents"):
        retriever.add_documents([Document("three", id=ids[0])])
    assert retriever.delete([ids[0]])["succeeded"] == ids[:1]
    assert {*store.store} == {ids[1]}


def test_other_stores_are_known_by_their_names() -> None:
    """Milvus is not installed here: one of its name stands in for it. Other keys are the user's."""

    class Milvus(InMemoryVectorStore):
        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            return [(Document("one", metadata={"pk": 7, "n": 1}), 1.0)]

    chunks = [Document(text, metadata={"pk": 1, "_id": 2}) for text in ("one", "two")]
    others = InMemoryVectorStore.from_documents(chunks, MODEL)
    found = CAUSRetriever.from_vectorstore(others, chunks).invoke("one")
    assert [(each.metadata["pk"], each.metadata["_id"]) for each in found] == [(1, 2)] * 2
    Milvus.__module__, Milvus.__qualname__ = "langchain_milvus.vectorstores.milvus", "Milvus"
    known = [Document("one", id="7", metadata={"n": 1})]
    (found,) = CAUSRetriever.from_vectorstore(
        Milvus(MODEL), known, higher_is_better=True, include_scores=False
    ).invoke("one")
    assert found == known[0]
