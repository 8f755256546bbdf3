"""How a vector store is searched and its documents are read, by the facts known about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from langchain_posrag.documents import copy_with
from langchain_posrag.known_stores import store_facts
from shared_core.index.metadata import Where


def direction_of_scores(store: VectorStore) -> bool:
    """Return whether a higher raw score of a store is better.

    Raises
    ------
    ValueError
        If it is not known.
    """
    direction = store_facts(store).higher_is_better
    if direction is None:
        raise ValueError(
            f"whether a higher score of {type(store).__name__} is better is not known: pass "
            "higher_is_better=True if it returns similarities, False if it returns distances"
        )
    return direction if isinstance(direction, bool) else direction(store)


def check_scored_search(store: VectorStore) -> None:
    """Raise ValueError if a store cannot search with scores, neither sync nor async."""
    scored = ("similarity_search_with_score", "asimilarity_search_with_score")
    if all(getattr(type(store), name, None) in (None, vars(VectorStore)[name]) for name in scored):
        raise ValueError(
            f"{type(store).__name__} has no similarity_search_with_score, whose scores are fused: "
            "use a store that has it, or CAUSRetriever.from_documents"
        )


def search_arguments(store: VectorStore, k: int, where: Where) -> dict[str, Any]:
    """Return the keyword arguments of a search for `k` documents that pass a filter.

    The filter is among them if the store can apply all of it. A store that allocates as much as
    it is asked for is asked for no more than it holds.
    """
    facts = store_facts(store)
    arguments: dict[str, Any] = {"k": k}
    given = None if where is None else facts.filter(where)
    if given is not None:
        arguments["filter"] = given
    if facts.size is not None:
        everything = max(1, facts.size(store))
        arguments["k"] = min(k, everything)
        if given is not None:
            arguments["fetch_k"] = everything
    return arguments


def strip_added_metadata(store: VectorStore, documents: Iterable[Document]) -> list[Document]:
    """Return documents of a store under their ids, without the metadata that the store adds.

    The dense and the sparse leg thus recognise a document by what the user added.
    """
    keys = store_facts(store).added_metadata
    return [_strip(document, keys) for document in documents] if keys else list(documents)


def _strip(document: Document, keys: tuple[str, ...]) -> Document:
    id_ = document.metadata.get(keys[0])
    if document.id is not None or id_ is None:
        return document
    metadata = {key: value for key, value in document.metadata.items() if key not in keys}
    return copy_with(document, metadata).model_copy(update={"id": str(id_)})
