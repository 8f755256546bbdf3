"""Between LangChain's documents and the core's passages. Nothing is shared, nothing mutated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from pydantic import BaseModel

from shared_core import Arrangement, Passage
from shared_core.checking import check_each
from shared_core.copying import copier
from shared_core.explanations import merge_explanation
from shared_core.unvalidated import maker

DETAIL = "posrag"
"""Metadata key under which a document explains its place."""

_DEFAULTS = vars(Document(page_content=""))
_unvalidated = maker(BaseModel)


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


def id_of(document: Document) -> str:
    """Return the document's id, or a random one if it has none."""
    return str(uuid.uuid4()) if document.id is None else document.id


def passage_of(document: Document, id_: str) -> Passage:
    """Return a document as a passage."""
    return Passage(id_, document.page_content, copy_metadata(document.metadata, document))


def with_id(document: Document) -> Document:
    """Return a copy that has an id; see `id_of`."""
    metadata = copy_metadata(document.metadata, document)
    return new_document(id_of(document), document.page_content, metadata)


def copy_with(document: Document, metadata: dict[Any, Any], *, text: str | None = None) -> Document:
    """Return a copy with other metadata, and another text if given.

    A document of a custom class keeps its class and its other fields as they are.
    """
    text = document.page_content if text is None else text
    if type(document) is Document:
        return new_document(document.id, text, metadata)
    return document.model_copy(update={"page_content": text, "metadata": metadata})


def copy_of(document: Document, detail: Mapping[str, Any] | None = None) -> Document:
    """Return a copy, with the explanation `detail` of its slot if given."""
    metadata = copy_metadata(document.metadata, document)
    if detail is not None:
        metadata[DETAIL] = merge_explanation(metadata.get(DETAIL), detail)
    return copy_with(document, metadata)


def bare_copy_of(document: Document, *, text: str | None = None) -> Document:
    """Return a copy without posrag's explanation and score, and with another text if given.

    Keys of these names that are the user's stay.
    """
    metadata, detail = document.metadata, detail_of(document)
    if "slot" in detail or "retrieval" in detail:  # else it is the user's
        ours = {DETAIL, "score"} if _is_scored(metadata) else {DETAIL}
        metadata = {key: value for key, value in metadata.items() if key not in ours}
    return copy_with(document, copy_metadata(metadata, document), text=text)


def detail_of(document: Document) -> dict[str, Any]:
    """Return the explanation of a document by earlier steps; {} if the key holds anything else."""
    detail = document.metadata.get(DETAIL)
    return detail if isinstance(detail, dict) else {}


def new_document(id_: str | None, text: str, metadata: dict[Any, Any]) -> Document:
    """Return ``Document(id=id_, page_content=text, metadata=metadata)`` without validating it."""
    values = _DEFAULTS.copy()
    values["id"], values["page_content"], values["metadata"] = id_, text, metadata
    return _unvalidated(Document, values, {"id", "page_content", "metadata"})


def document_of(passage: Passage) -> Document:
    """Return a fresh document of a passage; the id of a passage without one is ``""``."""
    metadata = copy_metadata(passage.metadata, passage)
    return new_document(passage.id or None, passage.text, metadata)


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


def documents_of(arrangement: Arrangement, *, include_scores: bool) -> list[Document]:
    """Return the arranged passages as documents, slot by slot.

    With `include_scores` each carries its explanation; see `annotate`.
    """
    if not include_scores:
        return [document_of(passage) for passage in arrangement.passages]
    documents = []
    for passage, detail in zip(arrangement.passages, arrangement.explain(), strict=True):
        metadata = copy_metadata(passage.metadata, passage)
        annotate(metadata, detail)
        documents.append(new_document(passage.id or None, passage.text, metadata))
    return documents


def annotate(metadata: dict[Any, Any], detail: dict[str, Any], *, spent: str | None = None) -> None:
    """Add `detail` under ``"posrag"``, and its score under ``"score"``.

    The user's ``"score"`` stays as it is. It is replaced if it comes from an earlier search of
    posrag, or if it is the `spent` key: the new score was made from it, and ``detail["dense"]``
    keeps it.
    """
    if "score" not in metadata or spent == "score" or _is_scored(metadata):
        metadata["score"] = detail["score"]
    metadata[DETAIL] = detail


def _is_scored(metadata: Mapping[Any, Any]) -> bool:
    """Return whether the score comes from an earlier search of posrag."""
    earlier = metadata.get(DETAIL)
    return (
        isinstance(earlier, dict)
        and "score" in metadata
        and earlier.get("score", ...) == metadata["score"]
    )
