"""Spans where LangChain has its own ways: pipes, compressors, splitters."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_posrag import CAUSRetriever, NeighbourSpanTransformer
from shared_core.neighbour_spans import NeighbourSpans

EMBEDDINGS = DeterministicFakeEmbedding(size=16)
WINDOW = NeighbourSpans(window=1, token_budget=None)
STEPS = [
    "To reset the pump, first close the valve.",
    "Then open the drain and wait a minute.",
    "At last press the green button twice.",
    "The pump hums when it is ready.",
    "Call the service if it does not.",
]


def chunks(document: str = "manual", **metadata: Any) -> list[Document]:
    return [
        Document(
            text, id=f"{document}{n}", metadata={"doc_id": document, "chunk_id": n, **metadata}
        )
        for n, text in enumerate(STEPS)
    ]


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def joined(first: int, last: int) -> str:
    return "\n".join(STEPS[first : last + 1])


def test_a_vector_store_of_documents_without_ids_takes_neighbours() -> None:
    nameless = [document.model_copy(update={"id": None}) for document in chunks()]
    store = InMemoryVectorStore.from_documents(nameless, EMBEDDINGS)
    retriever = CAUSRetriever.from_vectorstore(store, nameless, k=1, alpha=0.0, expand=WINDOW)
    assert texts(retriever.invoke("open the drain")) == [joined(0, 2)]


def test_the_score_may_have_a_name_of_ones_own() -> None:
    far = [chunks(name, far=score)[2] for name, score in (("a", 0.2), ("b", 0.9))]
    order = NeighbourSpans(order="score_descending")
    transformer = NeighbourSpanTransformer(expand=order, score_key="far", higher_is_better=False)
    assert [hit.metadata["score"] for hit in transformer.invoke(far)] == [-0.2, -0.9]


def test_the_start_index_of_a_splitter_tells_neighbours() -> None:
    """What overlaps stands there once: the span is a stretch of the text."""
    text = "\n\n".join(f"Paragraph {n} is about {n * 7} things and ends." for n in range(30))
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=120, chunk_overlap=30, add_start_index=True
    )
    whole = [Document(text, metadata={"source": name}) for name in ("a.md", "b.md")]
    split = splitter.split_documents(whole)
    transformer = NeighbourSpanTransformer.from_documents(split, expand=WINDOW)
    for chunk in split[1:8]:
        (found,) = transformer.invoke([chunk])
        assert found.page_content in text
        assert len(found.page_content) > 2 * len(chunk.page_content)
        assert found.metadata["source"] == chunk.metadata["source"]
