"""Spans where LangChain has its own ways: pipes, compressors, splitters."""

from __future__ import annotations

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


def chunks() -> list[Document]:
    return [
        Document(text, metadata={"doc_id": "manual", "chunk_id": n}) for n, text in enumerate(STEPS)
    ]


def test_a_vector_store_of_documents_without_ids_takes_neighbours() -> None:
    store = InMemoryVectorStore.from_documents(chunks(), EMBEDDINGS)
    retriever = CAUSRetriever.from_vectorstore(store, chunks(), k=1, alpha=0.0, expand=WINDOW)
    (found,) = retriever.invoke("open the drain")
    assert found.page_content == "\n".join(STEPS[:3])


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
