"""What vector stores can do; an entry in `STORES` adds another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.vectorstores import VectorStore

from langchain_posrag.store_filters import (
    StoreFilter,
    as_function,
    as_function_of_document,
    chroma,
    pgvector,
    qdrant,
    single_values,
)


@dataclass(frozen=True, kw_only=True)
class StoreCapabilities:
    """What one class of vector stores can do; the defaults apply to an unknown store.

    Attributes
    ----------
    higher_is_better
        Direction of the scores of ``similarity_search_with_score``, or a function that returns
        that of a store; None: not known.
    cosines
        Whether these scores are cosines, or a function of a store, too.
    filter
        Makes of a filter what the store takes.
    size
        Returns the number of documents in a store that allocates as many as it is asked for and
        filters only the nearest ``fetch_k``; None: it does neither.
    added_metadata
        Metadata keys that the store adds to a document in place of its id; the id comes first.
    replaces
        Whether adding a document under an id that is there replaces it.
    """

    higher_is_better: bool | Callable[[Any], bool] | None = None
    cosines: bool | Callable[[Any], bool] = False
    filter: StoreFilter = single_values
    size: Callable[[Any], int] | None = None
    added_metadata: tuple[str, ...] = ()
    replaces: bool = True


def capabilities_of(store: VectorStore) -> StoreCapabilities:
    """Return those of a store's class, or of the nearest known one that it inherits."""
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(store).__mro__)
    return next((STORES[name] for name in names if name in STORES), StoreCapabilities())


def scores_of(store: VectorStore) -> tuple[bool | None, bool]:
    """Return whether a higher raw score is better, None if that is not known; and a cosine."""
    can = capabilities_of(store)
    better, cosines = (
        fact(store) if callable(fact) else fact for fact in (can.higher_is_better, can.cosines)
    )
    return better, bool(cosines)


def _faiss_by_inner_product(store: Any) -> bool:
    return bool(store.index.metric_type == 0)  # faiss.METRIC_INNER_PRODUCT


STORES: dict[str, StoreCapabilities] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": StoreCapabilities(
        higher_is_better=True, cosines=True, filter=as_function_of_document
    ),
    "langchain_community.vectorstores.faiss.FAISS": StoreCapabilities(
        higher_is_better=_faiss_by_inner_product,
        filter=as_function,
        size=lambda store: store.index.ntotal,
        replaces=False,  # it raises, and only after it has added the vector
    ),
    "langchain_chroma.vectorstores.Chroma": StoreCapabilities(
        higher_is_better=False, filter=chroma
    ),
    "langchain_community.vectorstores.chroma.Chroma": StoreCapabilities(
        higher_is_better=False, filter=chroma
    ),
    "langchain_postgres.vectorstores.PGVector": StoreCapabilities(
        higher_is_better=False, filter=pgvector
    ),
    "langchain_community.vectorstores.pgvector.PGVector": StoreCapabilities(higher_is_better=False),
    "langchain_qdrant.qdrant.QdrantVectorStore": StoreCapabilities(
        higher_is_better=lambda store: store.distance.value in ("Cosine", "Dot"),
        cosines=lambda store: bool(store.distance.value == "Cosine"),
        filter=qdrant,
        added_metadata=("_id", "_collection_name"),
    ),
    "langchain_qdrant.vectorstores.Qdrant": StoreCapabilities(
        added_metadata=("_id", "_collection_name")
    ),
    "langchain_milvus.vectorstores.milvus.Milvus": StoreCapabilities(added_metadata=("pk",)),
}
"""By qualified class name. Facts are from the source; filters were tried on the store."""
