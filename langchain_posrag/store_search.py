"""The search of a vector store, asked again, and deeper, while a filter leaves too few."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_posrag.vector_stores import as_added, search_arguments
from shared_core.index.metadata import Where, predicate, several

Hits = list[tuple[Document, float]]

DEEPER = 4
"""By how much more a store is asked for, where a filter left too few."""


def find(store: VectorStore, query: str, depth: int, where: Where) -> Hits:
    """Return the best `depth` hits that pass a filter, with their raw scores.

    What the store lets through nevertheless is dropped. If that leaves fewer than `depth`, the
    store is asked for more, until there are enough or it has no more: a filter that it cannot be
    told, and that few pass, reads much of it.
    """
    if where is None:
        return _as_added(store, _scored(store, query, search_arguments(store, depth, None)))
    asked = _Asked(store, depth, where)
    while asked.arguments is not None:
        try:
            hits = _scored(store, query, asked.arguments)
        except Exception as error:
            asked.refused(error)
        else:
            asked.answered(hits)
    return asked.hits


async def afind(store: VectorStore, query: str, depth: int, where: Where) -> Hits:
    """Do what `find` does, with the store awaited."""
    if where is None:
        arguments = search_arguments(store, depth, None)
        return _as_added(store, await store.asimilarity_search_with_score(query, **arguments))
    asked = _Asked(store, depth, where)
    while asked.arguments is not None:
        try:
            hits = await store.asimilarity_search_with_score(query, **asked.arguments)
        except Exception as error:
            asked.refused(error)
        else:
            await run_in_executor(None, asked.answered, hits)
    return asked.hits


def _scored(store: VectorStore, query: str, arguments: Mapping[str, Any]) -> Hits:
    try:
        return store.similarity_search_with_score(query, **arguments)
    except NotImplementedError as error:
        if error.args:
            raise
        raise NotImplementedError(
            f"{type(store).__name__} searches with scores only when awaited: use ainvoke"
        ) from error


def _as_added(store: VectorStore, hits: Hits) -> Hits:
    documents = as_added(store, (document for document, _ in hits))
    return [(document, score) for document, (_, score) in zip(documents, hits, strict=True)]


class _Asked:
    """What a store is to be asked next, in `arguments`, until they are None; and its `hits`."""

    def __init__(self, store: VectorStore, depth: int, where: Where) -> None:
        self.hits: Hits = []
        self.arguments: dict[str, Any] | None = search_arguments(store, depth, where)
        self._store = store
        self._depth = depth
        self._where = where
        self._passes = predicate(where)
        if isinstance(where, Mapping) and any(len(several(value)) == 0 for value in where.values()):
            self.arguments = None  # any of none: nothing passes

    def answered(self, hits: Hits) -> None:
        """Take what the store has found; ask for more if too little of it passes."""
        asked, self.arguments = self.arguments, None
        passing = [hit for hit in hits if self._passes(hit[0].metadata)]
        self.hits = _as_added(self._store, passing[: self._depth])
        if asked and len(passing) < min(self._depth, len(hits)) and len(hits) >= asked["k"]:
            self.arguments = {**asked, "k": DEEPER * asked["k"]}

    def refused(self, error: Exception) -> None:
        """Ask without the filter if that is what the store may have refused; else raise."""
        asked = self.arguments or {}
        if "filter" not in asked or callable(asked["filter"]):
            raise error
        warnings.warn(
            f"{type(self._store).__name__} refused the filter {self._where!r} "
            f"({type(error).__name__}: {error}): it is searched without, and deeper",
            stacklevel=2,
        )
        self.arguments = {"k": asked["k"]}
