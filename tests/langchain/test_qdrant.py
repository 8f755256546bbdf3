"""Qdrant as the dense leg: it returns a document's id in the metadata, and none as its id."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_qdrant import QdrantVectorStore
from qdrant_client.models import Distance

from langchain_posrag import CAUSRetriever
from langchain_posrag.vector_stores import direction_of_scores, strip_added_metadata

WORDS = ["relu", "conv", "pool", "adam", "norm"]
QUERY = "the relu layer"


def named(word: str) -> str:
    return str(uuid5(NAMESPACE_URL, word))


DOCUMENTS = [
    Document(f"the {word} layer", metadata={"n": n, "tags": [word]}, id=named(word))
    for n, word in enumerate(WORDS)
]


@pytest.fixture
def store() -> Iterator[QdrantVectorStore]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of payload indexes, which it has none of in memory
        made = QdrantVectorStore.from_documents(
            DOCUMENTS,
            DeterministicFakeEmbedding(size=16),
            ids=[document.id for document in DOCUMENTS],
            location=":memory:",
        )
        yield made
        made.client.close()


@pytest.fixture
def retriever(store: QdrantVectorStore) -> CAUSRetriever:
    return CAUSRetriever.from_vectorstore(store, DOCUMENTS, k=20)


def facts(documents: list[Document]) -> dict[str | None, tuple[str, Any]]:
    return {d.id: (d.page_content, d.metadata["n"]) for d in documents}


EXPECTED = facts(DOCUMENTS)


def test_a_document_of_both_legs_comes_once(retriever: CAUSRetriever) -> None:
    """Under its id, with the metadata it was added with."""
    found = retriever.invoke(QUERY)
    assert len(found) == len(DOCUMENTS)
    assert facts(found) == EXPECTED
    assert not any({"_id", "_collection_name"} & {*document.metadata} for document in found)


async def test_also_when_awaited(retriever: CAUSRetriever) -> None:
    assert facts(await retriever.ainvoke(QUERY)) == EXPECTED


def test_also_where_the_documents_have_no_ids(store: QdrantVectorStore) -> None:
    """Then text and metadata tell that they are the same."""
    unnamed = [Document(d.page_content, metadata=d.metadata) for d in DOCUMENTS]
    found = CAUSRetriever.from_vectorstore(store, unnamed, k=20).invoke(QUERY)
    assert len(found) == len(DOCUMENTS)


@pytest.mark.parametrize("where", [{"n": 2}, {"n": [1, 2, 7]}, lambda m: m["n"] > 2, {"n": 9}])
def test_filters_hold(retriever: CAUSRetriever, where: Any) -> None:
    """Without a word of warning: it is not told what it would refuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = retriever.invoke(QUERY, filter=where)
    passing = [0, 1, 2, 3, 4]
    if callable(where):
        passing = [3, 4]
    else:
        wanted = where["n"] if isinstance(where["n"], list) else [where["n"]]
        passing = [n for n in passing if n in wanted]
    assert sorted(document.metadata["n"] for document in found) == passing


def test_what_is_deleted_is_gone_from_both_legs(
    retriever: CAUSRetriever, store: QdrantVectorStore
) -> None:
    """And nothing else."""
    assert retriever.delete([named("relu")])["succeeded"] == [named("relu")]
    assert store.get_by_ids([named("relu")]) == []
    assert {*facts(retriever.invoke(QUERY))} == {*EXPECTED} - {named("relu")}


def test_what_is_added_and_replaced_comes_once(retriever: CAUSRetriever) -> None:
    """Under its own id; the older text is nowhere."""
    retriever.add_documents([Document("the gelu layer", metadata={"n": 5}, id=named("gelu"))])
    retriever.upsert([Document("the prelu layer", metadata={"n": 0}, id=named("relu"))])
    found = facts(retriever.invoke("relu prelu gelu"))
    assert found == {
        **EXPECTED,
        named("gelu"): ("the gelu layer", 5),
        named("relu"): ("the prelu layer", 0),
    }
    assert facts(retriever.get([named("gelu")])) == {named("gelu"): ("the gelu layer", 5)}


@pytest.mark.parametrize(
    ("distance", "higher"),
    [
        (Distance.COSINE, True),
        (Distance.DOT, True),
        (Distance.EUCLID, False),
        (Distance.MANHATTAN, False),
    ],
)
def test_the_direction_of_its_scores_is_known(distance: Distance, higher: bool) -> None:
    """By the distance of the collection."""
    store = QdrantVectorStore.construct_instance(
        DeterministicFakeEmbedding(size=4),
        client_options={"location": ":memory:"},
        collection_name="c",
        distance=distance,
    )
    assert direction_of_scores(store) is higher
    store.client.close()


def test_an_id_in_the_metadata_of_another_store_is_the_users_own() -> None:
    """Chunks of one record may share it."""
    chunks = [Document(text, metadata={"_id": "record", "pk": 1}) for text in ("one", "two")]
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    assert strip_added_metadata(store, chunks) == chunks


def test_milvus_is_known_by_its_key() -> None:
    """Its class is not installed here: one of its name stands in for it."""

    class Milvus(InMemoryVectorStore):
        pass

    Milvus.__module__, Milvus.__qualname__ = "langchain_milvus.vectorstores.milvus", "Milvus"
    store = Milvus(DeterministicFakeEmbedding(size=4))
    (document,) = strip_added_metadata(store, [Document("text", metadata={"pk": 7, "n": 1})])
    assert document == Document("text", metadata={"n": 1}, id="7")
