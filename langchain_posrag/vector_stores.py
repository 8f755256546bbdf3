"""What has to be known of a vector store to use its scores. Each entry was read in its source."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from langchain_posrag.store_filters import native_filter
from shared_core.index.metadata import Where, predicate

FAISS = "langchain_community.vectorstores.faiss.FAISS"
QDRANT = "langchain_qdrant.qdrant.QdrantVectorStore"

HIGHER_IS_BETTER = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": True,
    "langchain_chroma.vectorstores.Chroma": False,
    "langchain_community.vectorstores.chroma.Chroma": False,
    "langchain_community.vectorstores.pgvector.PGVector": False,
    "langchain_postgres.vectorstores.PGVector": False,
}
"""Direction of the scores of ``similarity_search_with_score``, by the name of the store's class."""

_INNER_PRODUCT = 0
"""``faiss.METRIC_INNER_PRODUCT``."""


def higher_is_better(store: VectorStore) -> bool:
    """Return the direction of a store's raw scores.

    Raises
    ------
    ValueError
        If the store is not known.
    """
    names = class_names(store)
    if FAISS in names:
        return store.index.metric_type == _INNER_PRODUCT  # type: ignore[attr-defined, no-any-return]
    if QDRANT in names:
        return str(store.distance.value) in ("Cosine", "Dot")  # type: ignore[attr-defined]
    for name in names:
        if name in HIGHER_IS_BETTER:
            return HIGHER_IS_BETTER[name]
    raise ValueError(
        f"whether a higher score of {type(store).__name__} is better is not known: pass "
        "higher_is_better=True if it returns similarities, False if it returns distances"
    )


def check_scored_search(store: VectorStore) -> None:
    """Raise ValueError if a store cannot search with scores, neither directly nor awaited."""
    scored = ("similarity_search_with_score", "asimilarity_search_with_score")
    if all(getattr(type(store), name, None) in (None, vars(VectorStore)[name]) for name in scored):
        raise ValueError(
            f"{type(store).__name__} has no similarity_search_with_score, by whose scores the legs "
            "are fused: use a store that has, or CAUSRetriever.from_documents"
        )


def search_arguments(store: VectorStore, k: int, where: Where) -> dict[str, Any]:
    """Return the keyword arguments of a search for `k` documents that pass a filter.

    InMemoryVectorStore and FAISS get a function that means what the sparse leg means; other
    stores get what `native_filter` can tell them. FAISS makes room for what it is asked for, and
    so is asked for no more than it holds.
    """
    arguments: dict[str, Any] = {"k": k}
    faiss = FAISS in class_names(store)
    if faiss:
        everything = max(1, store.index.ntotal)  # type: ignore[attr-defined]
        arguments["k"] = min(k, everything)
    if where is None:
        return arguments
    passes = predicate(where)
    if faiss:
        return {**arguments, "filter": passes, "fetch_k": everything}
    if isinstance(store, InMemoryVectorStore):

        def keep(document: Document) -> bool:
            return passes(document.metadata)

        return {**arguments, "filter": keep}
    native = native_filter(class_names(store), where)
    return arguments if native is None else {**arguments, "filter": native}


def replaces_documents(store: VectorStore) -> bool:
    """Return whether adding a document under an id that is there replaces it.

    FAISS raises instead, and only after it has added the vector.
    """
    return FAISS not in class_names(store)


def class_names(store: VectorStore) -> list[str]:
    """Return the names of a store's class and of those it inherits from, with their modules."""
    return [f"{cls.__module__}.{cls.__qualname__}" for cls in type(store).__mro__]
