"""Saved to a folder and read back."""

from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import CAUSRetriever


def test_a_vector_store_keeps_its_own_documents(
    documents: list[Document], embeddings: Embeddings, tmp_path: Path
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    retriever = CAUSRetriever.from_vectorstore(store, documents)

    with pytest.raises(ValueError, match="InMemoryVectorStore keeps its own documents"):
        retriever.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_loading_without_embeddings_says_so(retriever: CAUSRetriever, tmp_path: Path) -> None:
    retriever.save(tmp_path / "index")

    with pytest.raises(ValueError, match=r"needs embeddings=.* and embeddings=None"):
        CAUSRetriever.load(tmp_path / "index", None)
    with pytest.raises(ValueError, match=r"embeddings\n.*Embeddings"):
        CAUSRetriever.load(tmp_path / "index", "local")
