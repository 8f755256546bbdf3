"""Documents come and go."""

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.indexing import InMemoryRecordManager, index

from langchain_posrag import CAUSRetriever

EMPTY = {"num_added": 0, "num_updated": 0, "num_skipped": 0, "num_deleted": 0}


class Broken(DeterministicFakeEmbedding):
    """Fails where a text says so."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = super().embed_documents(texts)
        for text, vector in zip(texts, vectors, strict=True):
            if text == "raise":
                raise ConnectionError("no model today")
            if text == "nan":
                vector[0] = float("nan")
            if text == "short":
                vector.pop()
        return vectors[:-1] if "lost" in texts else vectors


def ids(retriever: CAUSRetriever) -> list[str | None]:
    return [document.id for document in retriever.invoke("relu", k=100)]


async def test_added_documents_are_found(retriever: CAUSRetriever) -> None:
    assert retriever.add_documents([Document("swish", id="a")]) == ["a"]
    assert await retriever.aadd_documents([Document("gelu", id="b")]) == ["b"]

    assert retriever.invoke("swish", k=1, alpha=0.0)[0].id == "a"
    assert {"a", "b"} <= set(ids(retriever))


def test_a_document_without_an_id_gets_one_it_is_found_by(retriever: CAUSRetriever) -> None:
    document = Document("swish")

    (id_,) = retriever.add_documents([document])

    assert document.id is None
    assert retriever.get([id_])[0].page_content == "swish"
    assert id_ in ids(retriever)


def test_an_added_document_replaces_that_of_its_id(retriever: CAUSRetriever) -> None:
    retriever.add_documents([Document("swish", id="d0")])

    assert len(ids(retriever)) == 14
    assert retriever.get(["d0"])[0].page_content == "swish"
    assert retriever.invoke("conv", filter=lambda metadata: "swish" in metadata) == []


def test_adding_then_deleting_leaves_results_as_they_were(retriever: CAUSRetriever) -> None:
    before = retriever.invoke("relu layer")

    retriever.add_documents([Document("relu relu layer", id="x"), Document("layer", id="y")])
    assert retriever.invoke("relu layer") != before
    answer = retriever.delete(["x", "y", "unknown"])

    assert answer == {"succeeded": ["x", "y"], "num_deleted": 2, "failed": [], "num_failed": 0}
    assert retriever.invoke("relu layer") == before


@pytest.mark.parametrize("text", ["raise", "nan", "short", "lost"])
async def test_nothing_is_half_added(documents: list[Document], text: str) -> None:
    retriever = CAUSRetriever.from_documents(documents, Broken(size=16))
    before, answer = ids(retriever), retriever.invoke("relu")
    batch = [Document("fine", id="a"), Document(text, id="b"), Document("good", id="d0")]

    with pytest.raises((ConnectionError, ValueError)):
        retriever.add_documents(batch)
    with pytest.raises((ConnectionError, ValueError)):
        await retriever.aupsert(batch)

    assert ids(retriever) == before
    assert retriever.invoke("relu") == answer


def test_an_id_twice_is_refused_by_name(retriever: CAUSRetriever) -> None:
    with pytest.raises(ValueError, match="'twice'"):
        retriever.add_documents([Document("a", id="twice"), Document("b", id="twice")])

    assert retriever.get(["twice"]) == []


def test_vectors_as_an_array(documents: list[Document]) -> None:
    class Arrays(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return np.array(model.embed_documents(texts), np.float32)  # type: ignore[return-value]

        def embed_query(self, text: str) -> list[float]:
            return np.array(model.embed_query(text), np.float32)  # type: ignore[return-value]

    model = DeterministicFakeEmbedding(size=16)

    assert len(ids(CAUSRetriever.from_documents(documents, Arrays()))) == 14


async def test_delete_needs_ids(retriever: CAUSRetriever) -> None:
    with pytest.raises(ValueError, match="ids"):
        retriever.delete()
    with pytest.raises(ValueError, match="ids"):
        await retriever.adelete()
    assert retriever.delete([])["num_deleted"] == 0
    assert len(ids(retriever)) == 14


def test_unknown_arguments_are_refused(retriever: CAUSRetriever) -> None:
    with pytest.raises(TypeError, match="batch_size"):
        retriever.upsert([], batch_size=3)
    with pytest.raises(TypeError, match="where"):
        retriever.delete(["a"], where={})


def test_the_indexing_api_of_langchain_keeps_the_index_in_step(
    documents: list[Document], embeddings: Embeddings
) -> None:
    retriever = CAUSRetriever.from_documents([], embeddings)
    records = InMemoryRecordManager("records")
    records.create_schema()

    def synchronise(now: list[Document]) -> dict[str, int]:
        return index(now, records, retriever, cleanup="full", key_encoder="sha256")

    assert synchronise(documents) == {**EMPTY, "num_added": 14}
    assert synchronise(documents[1:]) == {**EMPTY, "num_skipped": 13, "num_deleted": 1}
    assert len(ids(retriever)) == 13
