"""One table of what vector stores do; a store that is not in it is asked for nothing special."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_posrag import CAUSRetriever
from langchain_posrag.known_stores import STORES, KnownStore, store_facts

NOT_INSTALLED = ("langchain_chroma", "langchain_postgres", "langchain_milvus")


class Rows(InMemoryVectorStore):
    """Returns distances, ids under ``row``, and takes filters as ``(key, value)``; a stranger."""

    def __init__(self, embedding: Embeddings) -> None:
        super().__init__(embedding)
        self.told: list[dict[str, Any]] = []

    def similarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        self.told.append({"k": k, **kwargs})
        key, value = kwargs.get("filter", (None, None))
        found = super().similarity_search_with_score(
            query, k, filter=lambda document: key is None or document.metadata.get(key) == value
        )
        return [
            (Document(hit.page_content, metadata={**hit.metadata, "row": hit.id}), 1 - score)
            for hit, score in found
        ]


def pair(where: Any) -> Any:
    return None if callable(where) else next(iter(where.items()))


@pytest.mark.parametrize("name", [n for n in STORES if not n.startswith(NOT_INSTALLED)])
def test_the_names_are_those_of_the_classes(name: str) -> None:
    """A module that was moved would make a known store an unknown one, silently."""
    module, _, cls = name.rpartition(".")
    found = getattr(import_module(module), cls)
    assert issubclass(found, VectorStore)
    assert f"{found.__module__}.{found.__qualname__}" == name


def test_one_entry_makes_a_store_known(
    documents: list[Document], embeddings: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its direction, its filters, what it returns for an id, and that it does not replace."""
    entry = KnownStore(
        higher_is_better=False,
        filter=pair,
        added_metadata=("row",),
        replaces=False,
    )
    monkeypatch.setitem(STORES, f"{Rows.__module__}.{Rows.__qualname__}", entry)
    store = Rows.from_documents(documents, embeddings)
    own = InMemoryVectorStore.from_documents(documents, embeddings)
    options: dict[str, Any] = {"k": 4, "include_scores": False}
    retriever = CAUSRetriever.from_vectorstore(store, documents, **options)
    expected = CAUSRetriever.from_vectorstore(own, documents, **options)

    for where in (None, {"lang": "en"}, lambda metadata: metadata["page"] > 9):
        assert retriever.invoke("the relu layer", filter=where) == expected.invoke(
            "the relu layer", filter=where
        )
    assert store.told == [{"k": 50}, {"k": 50, "filter": ("lang", "en")}, {"k": 50}]
    with pytest.raises(ValueError, match="Rows cannot replace documents"):
        retriever.add_documents(documents[:1])


def test_a_subclass_is_known_by_what_it_inherits_from(embeddings: Embeddings) -> None:
    inherited = store_facts(InMemoryVectorStore(embeddings))
    assert store_facts(Rows(embeddings)) is inherited != KnownStore()


def test_a_store_that_is_not_known_says_so(documents: list[Document]) -> None:
    class Stranger(VectorStore):
        @classmethod
        def from_texts(cls, *args: Any, **kwargs: Any) -> Stranger:
            raise NotImplementedError

        def similarity_search(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

        def similarity_search_with_score(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    assert store_facts(Stranger()) == KnownStore()
    with pytest.raises(ValueError, match="score of Stranger is better is not known"):
        CAUSRetriever.from_vectorstore(Stranger(), documents)
