"""Between LangChain's documents and the gate: what it reads of them, and what it lets through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document

from langchain_posrag.documents import (
    DETAIL,
    bare_copy_of,
    copy_metadata,
    copy_with,
    detail_of,
)
from shared_core.gating import RetrievalDecision


class Gated(NamedTuple):
    """A decision, and the documents that the gate let through."""

    decision: RetrievalDecision
    documents: list[Document]


def read_explanations(documents: Sequence[Document]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the explanations and the texts of documents."""
    return [detail_of(each) for each in documents], [each.page_content for each in documents]


def let_through(
    decision: RetrievalDecision, documents: Sequence[Document], *, include_scores: bool
) -> Gated:
    """Return copies of the documents if the decision is to retrieve, or none.

    They carry the decision next to their earlier explanation; without `include_scores` no
    explanation at all, and no score that came with one.
    """
    if not decision.retrieve:
        return Gated(decision, [])
    if include_scores:
        return Gated(decision, [_explained(each, decision) for each in documents])
    return Gated(decision, [bare_copy_of(each) for each in documents])


def _explained(document: Document, decision: RetrievalDecision) -> Document:
    # The explanation is replaced anyway, and it alone would make the copy a deep one.
    metadata = copy_metadata({**document.metadata, DETAIL: None}, document)
    metadata[DETAIL] = {**detail_of(document), "retrieval": decision.explain()}
    return copy_with(document, metadata)
