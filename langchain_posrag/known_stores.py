"""Facts about vector stores; an entry in `STORES` adds those of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.vectorstores import VectorStore

from langchain_posrag.store_filters import (
    as_function_of_document,
    chroma,
    nothing,
    pgvector,
    single_values,
)
from shared_core.index.metadata import Where, predicate


@dataclass(frozen=True, kw_only=True)
class KnownStore:
    """Facts about one class of vector stores; the defaults apply to an unknown store.

    Attributes
    ----------
    higher_is_better
        Direction of the scores of ``similarity_search_with_score``, or a function that returns
        that of a store; None: not known.
    filter
        Converts a filter to what the store takes as ``filter=``; None if it cannot apply it all.
    size
        Returns the number of documents in a store that allocates as many as it is asked for and
        filters only the nearest ``fetch_k``; None: it does neither.
    added_metadata
        Metadata keys that the store adds to a document in place of its id; the id comes first.
    replaces
        Whether adding a document under an id that is there replaces it.
    """

    higher_is_better: bool | Callable[[Any], bool] | None = None
    filter: Callable[[Where], Any] = single_values
    size: Callable[[Any], int] | None = None
    added_metadata: tuple[str, ...] = ()
    replaces: bool = True


def store_facts(store: VectorStore) -> KnownStore:
    """Return the facts about a store's class, or about the nearest known one that it inherits."""
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(store).__mro__)
    return next((STORES[name] for name in names if name in STORES), KnownStore())


def _faiss_by_inner_product(store: Any) -> bool:
    return bool(store.index.metric_type == 0)  # faiss.METRIC_INNER_PRODUCT


def _qdrant_by_similarity(store: Any) -> bool:
    return store.distance.value in ("Cosine", "Dot")


STORES: dict[str, KnownStore] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": KnownStore(
        higher_is_better=True, filter=as_function_of_document
    ),
    "langchain_community.vectorstores.faiss.FAISS": KnownStore(
        higher_is_better=_faiss_by_inner_product,
        filter=predicate,
        size=lambda store: store.index.ntotal,
        replaces=False,  # it raises, and only after it has added the vector
    ),
    "langchain_chroma.vectorstores.Chroma": KnownStore(higher_is_better=False, filter=chroma),
    "langchain_community.vectorstores.chroma.Chroma": KnownStore(
        higher_is_better=False, filter=chroma
    ),
    "langchain_postgres.vectorstores.PGVector": KnownStore(higher_is_better=False, filter=pgvector),
    "langchain_community.vectorstores.pgvector.PGVector": KnownStore(higher_is_better=False),
    "langchain_qdrant.qdrant.QdrantVectorStore": KnownStore(
        higher_is_better=_qdrant_by_similarity,
        filter=nothing,
        added_metadata=("_id", "_collection_name"),
    ),
    "langchain_qdrant.vectorstores.Qdrant": KnownStore(added_metadata=("_id", "_collection_name")),
    "langchain_milvus.vectorstores.milvus.Milvus": KnownStore(added_metadata=("pk",)),
}
"""By qualified class name. Facts are from the source; filters were tried on the store."""
