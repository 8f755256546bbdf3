"""Documents as they were added, from stores that return their ids in the metadata instead."""

from __future__ import annotations

from collections.abc import Iterable

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_posrag.documents import copy_with
from langchain_posrag.vector_stores import QDRANT, class_names

ADDED_METADATA = {
    QDRANT: ("_id", "_collection_name"),
    "langchain_qdrant.vectorstores.Qdrant": ("_id", "_collection_name"),
    "langchain_milvus.vectorstores.milvus.Milvus": ("pk",),
}
"""Metadata keys that a store adds, its id first, by the name of its class."""


def as_added(store: VectorStore, documents: Iterable[Document]) -> list[Document]:
    """Return documents of a store under their ids, without the metadata that the store adds.

    By what was added, the dense and the sparse leg know that a document of both is the same one.
    """
    documents = list(documents)
    names = class_names(store)
    keys = next((ADDED_METADATA[name] for name in names if name in ADDED_METADATA), ())
    return [_as_added(document, keys) for document in documents] if keys else documents


def _as_added(document: Document, keys: tuple[str, ...]) -> Document:
    id_ = document.metadata.get(keys[0])
    if document.id is not None or id_ is None:
        return document
    metadata = {key: value for key, value in document.metadata.items() if key not in keys}
    return copy_with(document, metadata).model_copy(update={"id": str(id_)})
