"""Search of a vector store, repeated more deeply while a filter leaves too few documents."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore

from langchain_posrag.vector_stores import search_arguments, strip_added_metadata
from shared_core.index.metadata import Where, predicate, wanted_values

Hits = list[tuple[Document, float]]

DEEPER = 4
"""Factor by which a store is asked for more each time a filter left too few: few repetitions."""


def find(store: VectorStore, query: str, depth: int, where: Where) -> Hits:
    """Return the best `depth` hits that pass a filter, with their raw scores.

    Documents that the store returns against the filter are dropped. If that leaves fewer than
    `depth`, the store is asked for more, until there are enough or it has no more: a filter that
    it cannot apply, and that few documents pass, makes it read much of its contents.
    """
    if where is None:
        return _with_added(store, _scored(store, query, search_arguments(store, depth, None)))
    asked = _Deepening(store, depth, where)
    while asked.arguments is not None:
        try:
            hits = _scored(store, query, asked.arguments)
        except Exception as error:
            asked.refused(error)
        else:
            asked.answered(hits)
    return asked.hits


async def afind(store: VectorStore, query: str, depth: int, where: Where) -> Hits:
    """Async version of `find`."""
    if where is None:
        arguments = search_arguments(store, depth, None)
        return _with_added(store, await store.asimilarity_search_with_score(query, **arguments))
    asked = _Deepening(store, depth, where)
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
            f"{type(store).__name__} searches with scores only asynchronously: use ainvoke"
        ) from error


def _with_added(store: VectorStore, hits: Hits) -> Hits:
    documents = strip_added_metadata(store, (document for document, _ in hits))
    return [(document, score) for document, (_, score) in zip(documents, hits, strict=True)]


class _Deepening:
    """The next `arguments` to search a store with, None once it is done, and the `hits` so far."""

    def __init__(self, store: VectorStore, depth: int, where: Where) -> None:
        self.hits: Hits = []
        self.arguments: dict[str, Any] | None = search_arguments(store, depth, where)
        self._store = store
        self._depth = depth
        self._where = where
        self._passes = predicate(where)
        if isinstance(where, Mapping) and any(
            len(wanted_values(value)) == 0 for value in where.values()
        ):
            self.arguments = None  # an empty list of values: nothing passes

    def answered(self, hits: Hits) -> None:
        """Keep the hits that pass; ask for more if too few do."""
        asked, self.arguments = self.arguments, None
        passing = [hit for hit in hits if self._passes(hit[0].metadata)]
        self.hits = _with_added(self._store, passing[: self._depth])
        if asked and len(passing) < min(self._depth, len(hits)) and len(hits) >= asked["k"]:
            self.arguments = {**asked, "k": DEEPER * asked["k"]}

    def refused(self, error: Exception) -> None:
        """Search without the filter if it may be what the store refused; raise the error if not."""
        asked = self.arguments or {}
        if "filter" not in asked or callable(asked["filter"]):
            raise error
        warnings.warn(
            f"{type(self._store).__name__} refused the filter {self._where!r} "
            f"({type(error).__name__}: {error}): the store is searched without it, and deeper",
            stacklevel=2,
        )
        self.arguments = {"k": asked["k"]}
