"""Between LangChain's documents and the core's passages. Nothing is shared, nothing mutated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing.base import DeleteResponse

from shared_core import Arrangement, Passage
from shared_core.checking import SHOWN, check_each, check_several
from shared_core.index.passages import check_passages
from shared_core.metadata import copied, merge_explanation
from shared_core.wording import shortened

DETAIL = "posrag"
"""Metadata key under which a document explains its place."""


def _name(of: Document | Passage) -> str:
    text = of.page_content if isinstance(of, Document) else of.text
    return f"document {of.id!r} ({text[:40]!r})"


_BLANK = Document("")


def copy_metadata(metadata: Mapping[Any, Any], of: Document | Passage) -> dict[Any, Any]:
    """Return a copy of the metadata of a document or passage; see `copied`."""
    return copied(metadata, lambda: _name(of))


def check_documents(documents: Iterable[Document], name: str = "documents") -> list[Document]:
    """Return documents as a list.

    Raises
    ------
    ValueError
        If they are one instead of several, or one of them is not a document.
    """
    return check_each(documents, name, Document)


def check_query(query: object) -> str:
    """Return the query; ValueError if it is anything but text, as the input of a chain may be."""
    if not isinstance(query, str):
        raise ValueError(
            f"a query is a string, got {shortened(repr(query), SHOWN)}: of a chain's input, pipe "
            'the question alone into the retriever, as in itemgetter("question") | retriever'
        )
    return query


def id_of(document: Document) -> str:
    """Return the document's id, or a random one if it has none."""
    return str(uuid.uuid4()) if document.id is None else document.id


def documents_from_texts(
    texts: Iterable[str],
    metadatas: Iterable[dict[str, Any]] | None,
    ids: Iterable[str] | None,
) -> list[Document]:
    """Return texts as documents, each with its metadata and id if given.

    Raises
    ------
    ValueError
        If one of the arguments is a single text, or their numbers differ.
    """
    texts = check_each(texts, "texts", str)
    columns: list[list[Any]] = []
    for name, values in (("metadatas", metadatas), ("ids", ids)):
        check_several(values, name)
        columns.append([None] * len(texts) if values is None else [*values])
        if len(columns[-1]) != len(texts):
            raise ValueError(f"got {len(texts)} texts and {len(columns[-1])} {name}")
    return [
        Document(page_content=text, metadata=metadata or {}, id=id_)
        for text, metadata, id_ in zip(texts, *columns, strict=True)
    ]


def id_list(ids: Iterable[str] | None) -> list[str]:
    """Return ids as a list; ValueError if they are None or a single text, or one is no text."""
    if ids is None:
        raise ValueError("this call needs ids=, a list of ids, got None")
    return check_each(ids, "ids", str)


def deletion(ids: list[str]) -> DeleteResponse:
    """Return what LangChain's indexing answers when documents have been deleted."""
    return DeleteResponse(num_deleted=len(ids), succeeded=ids, num_failed=0, failed=[])


def passage_of(document: Document, id_: str) -> Passage:
    """Return a document as a passage."""
    return Passage(id_, document.page_content, copy_metadata(document.metadata, document))


def as_passages(documents: Iterable[Document]) -> list[Passage]:
    """Return documents as passages that are only read; one without an id has the id ``""``."""
    return [Passage(each.id or "", each.page_content, each.metadata) for each in documents]


def passages_of(documents: Iterable[Document]) -> list[Passage]:
    """Return documents as passages for an index; one without an id gets a random one.

    Raises
    ------
    ValueError
        If they are one instead of several, one is not a document, its metadata cannot be copied, or
        an id is empty or occurs twice.
    """
    documents = check_each(documents, "documents", Document, "; from_texts takes texts")
    passages = [passage_of(document, id_of(document)) for document in documents]
    check_passages(passages)
    return passages


def document_of(passage: Passage) -> Document:
    """Return a fresh document of a passage; the id of a passage without one is ``""``."""
    fields = {
        **vars(_BLANK),
        "id": passage.id or None,
        "page_content": passage.text,
        "metadata": copy_metadata(passage.metadata, passage),
    }
    # What pydantic's `model_construct` does, at a third of the time: there is nothing to check.
    document, put = Document.__new__(Document), object.__setattr__
    put(document, "__dict__", fields)
    put(document, "__pydantic_fields_set__", {"id", "page_content", "metadata"})
    put(document, "__pydantic_extra__", None)
    put(document, "__pydantic_private__", None)
    return document


def documents_of(arrangement: Arrangement, *, include_scores: bool) -> list[Document]:
    """Return the arranged passages as documents by slot, with their explanation if told."""
    documents = [*map(document_of, arrangement.passages)]
    return annotated(documents, arrangement) if include_scores else documents


def annotated(documents: list[Document], arrangement: Arrangement) -> list[Document]:
    """Put into documents, slot by slot, their score and their explanation."""
    for document, detail in zip(documents, arrangement.explain(), strict=True):
        metadata = document.metadata
        metadata["score"], metadata[DETAIL] = detail["score"], detail
    return documents


def copy_of(
    document: Document,
    detail: Mapping[str, Any] | None = None,
    *,
    told: bool = True,
    text: str | None = None,
) -> Document:
    """Return a copy; a document of a custom class keeps its class and its other fields.

    Parameters
    ----------
    document
        The document.
    detail
        Explanation of its new slot, which is merged with the earlier one. None: that one stays.
    told
        False takes off posrag's explanation, and the score that came with it.
    text
        In place of its own.
    """
    metadata, earlier = copy_metadata(document.metadata, document), detail_of(document)
    if told and detail is not None:
        metadata[DETAIL] = merge_explanation(metadata.get(DETAIL), detail)
    if not told and ("slot" in earlier or "retrieval" in earlier):  # else the key is the user's
        del metadata[DETAIL]
        if "dense" in earlier or earlier.get("score", ...) == metadata.get("score"):
            metadata.pop("score", None)
    text = document.page_content if text is None else text
    return document.model_copy(update={"page_content": text, "metadata": metadata})


def detail_of(document: Document) -> dict[str, Any]:
    """Return the explanation of a document by earlier steps; {} if there is none."""
    detail = document.metadata.get(DETAIL)
    return detail if isinstance(detail, dict) else {}


def score_of(document: Document, key: str) -> float | None:
    """Return the score under a metadata key; None if there is none.

    Raises
    ------
    ValueError
        If the value is not a number.
    """
    given = document.metadata.get(key)
    if given is None:
        return None
    try:
        return float(given)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"metadata[{key!r}] must be a number, got {given!r}: name the key of the score with "
            "score_key="
        ) from error
