"""Checks on what is put into and taken out of a retriever's index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.indexing.base import DeleteResponse

from shared_core.checking import check_several

T = TypeVar("T")


def documents_from_texts(
    texts: Sequence[str],
    metadatas: Sequence[dict[str, Any]] | None,
    ids: Sequence[str] | None,
) -> list[Document]:
    """Return texts as documents, each with its metadata and id if given.

    Raises
    ------
    ValueError
        If one of the arguments is a single text, or their numbers differ.
    """
    check_several(texts, "texts")
    texts = [*texts]
    columns = _one_for_each("metadatas", metadatas, texts), _one_for_each("ids", ids, texts)
    return [
        Document(page_content=text, metadata=metadata or {}, id=id_)
        for text, metadata, id_ in zip(texts, *columns, strict=True)
    ]


def id_list(ids: Iterable[str] | None) -> list[str]:
    """Return ids as a list; ValueError if they are None or a single text."""
    if ids is None:
        raise ValueError("this call needs ids=, a list of ids, got None")
    check_several(ids)
    return [*ids]


def deletion(ids: list[str]) -> DeleteResponse:
    """Return what LangChain's indexing answers when documents have been deleted."""
    return DeleteResponse(num_deleted=len(ids), succeeded=ids, num_failed=0, failed=[])


def _one_for_each(name: str, values: Iterable[T] | None, texts: Sequence[str]) -> list[T | None]:
    """Return one of the values for each text; None for each if none are given."""
    if values is None:
        return [None] * len(texts)
    check_several(values, name)
    listed: list[T | None] = [*values]
    if len(listed) != len(texts):
        raise ValueError(f"got {len(texts)} texts and {len(listed)} {name}")
    return listed
