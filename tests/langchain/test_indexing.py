"""LangChain's document index: what it answers, and its indexing API on top."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index

from langchain_posrag import CAUSRetriever

EMPTY = {"num_added": 0, "num_updated": 0, "num_skipped": 0, "num_deleted": 0}


async def test_what_is_upserted_got_and_deleted_is_answered(retriever: CAUSRetriever) -> None:
    assert retriever.upsert([Document("swish", id="a")]) == {"succeeded": ["a"], "failed": []}
    assert (await retriever.aupsert([Document("gelu", id="b")]))["succeeded"] == ["b"]
    found = retriever.get(["b", "unknown", "a"])
    assert [document.page_content for document in found] == ["gelu", "swish"]
    assert await retriever.aget(["b", "unknown", "a"]) == found
    answer = {"succeeded": ["a"], "num_deleted": 1, "failed": [], "num_failed": 0}
    assert retriever.delete(["a", "unknown"]) == answer
    assert await retriever.adelete(["b"]) == {**answer, "succeeded": ["b"]}
    assert retriever.delete([])["num_deleted"] == 0


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
    assert len(retriever.invoke("relu", k=100)) == 13
