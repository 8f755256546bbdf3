"""Between LangChain's documents and the core's passages. Nothing is shared, nothing mutated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document

from shared_core import Arrangement, Passage
from shared_core.checking import SHOWN, check_each
from shared_core.copying import copier
from shared_core.explanations import merge_explanation
from shared_core.index.passages import check_passages
from shared_core.wording import shortened

DETAIL = "posrag"
"""Metadata key under which a document explains its place."""


def _name(of: Document | Passage) -> str:
    text = of.page_content if isinstance(of, Document) else of.text
    return f"document {of.id!r} ({text[:40]!r})"


copy_metadata = copier(_name)
"""Takes metadata and their document or passage, and returns a copy; see `copier`."""


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


def passage_of(document: Document, id_: str) -> Passage:
    """Return a document as a passage."""
    return Passage(id_, document.page_content, copy_metadata(document.metadata, document))


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
    metadata = copy_metadata(passage.metadata, passage)
    return Document(id=passage.id or None, page_content=passage.text, metadata=metadata)


def documents_of(arrangement: Arrangement, *, include_scores: bool) -> list[Document]:
    """Return the arranged passages as documents, slot by slot, each with its explanation if told.

    See `annotate`.
    """
    documents = [document_of(passage) for passage in arrangement.passages]
    if include_scores:
        for document, detail in zip(documents, arrangement.explain(), strict=True):
            annotate(document.metadata, detail)
    return documents


def copy_with(document: Document, metadata: dict[Any, Any], *, text: str | None = None) -> Document:
    """Return a copy with other metadata, and another text if given.

    A document of a custom class keeps its class and its other fields as they are.
    """
    text = document.page_content if text is None else text
    return document.model_copy(update={"page_content": text, "metadata": metadata})


def copy_of(document: Document, detail: Mapping[str, Any] | None = None) -> Document:
    """Return a copy, with the explanation `detail` of its slot if given."""
    metadata = copy_metadata(document.metadata, document)
    if detail is not None:
        metadata[DETAIL] = merge_explanation(metadata.get(DETAIL), detail)
    return copy_with(document, metadata)


def bare_copy_of(document: Document, *, text: str | None = None) -> Document:
    """Return a copy without posrag's explanation and score, and with another text if given."""
    metadata, detail = copy_metadata(document.metadata, document), detail_of(document)
    if "slot" in detail or "retrieval" in detail:  # else the key is the user's
        del metadata[DETAIL]
        if detail.get("score", ...) == metadata.get("score"):
            metadata.pop("score", None)
    return copy_with(document, metadata, text=text)


def detail_of(document: Document) -> dict[str, Any]:
    """Return the explanation of a document by earlier steps; {} if there is none."""
    detail = document.metadata.get(DETAIL)
    return detail if isinstance(detail, dict) else {}


def annotate(metadata: dict[Any, Any], detail: Mapping[str, Any]) -> None:
    """Put `detail` under ``"posrag"``, and its score under ``"score"``."""
    metadata["score"], metadata[DETAIL] = detail["score"], detail


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
