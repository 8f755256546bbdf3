"""What vector stores can do, and filters as they take them; an entry in `STORES` adds another one.

Each form of a filter was tried on the store itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from shared_core.engines.store import QDRANT_SCORES, ScoreKind, known_of, qdrant_pages
from shared_core.index.metadata import SIGNS

Wanted: TypeAlias = Mapping[str, Sequence[Any]]
"""Metadata key -> accepted values."""

Ranges: TypeAlias = Mapping[str, Mapping[str, float]]
"""Metadata key -> bounds of a number, as ``{"$gte": 1}``."""

# Each takes a store and what is wanted, and returns what the store takes as a filter, or None
# if it cannot apply that. What the store lets through too much is filtered later.


def chroma(_: Any, wanted: Wanted, ranges: Ranges) -> dict[str, Any] | None:
    """Return ``$in`` for each key and type, joined by ``$and``: its lists hold one type each."""
    clauses: list[dict[str, Any]] = []
    for key, values in wanted.items():
        by_type: dict[type, list[Any]] = {}
        for value in _alike(values):
            by_type.setdefault(type(value), []).append(value)
        either = [{key: {"$in": alike}} for alike in by_type.values()]
        if not either:
            return None
        clauses += either if len(either) == 1 else [{"$or": either}]
    clauses += _bounded(ranges)
    return {"$and": clauses} if len(clauses) > 1 else dict(*clauses)


def _bounded(ranges: Ranges) -> Iterator[dict[str, Any]]:
    """Yield a clause for each bound, as Chroma and pgvector take them."""
    for key, bounds in ranges.items():
        yield from ({key: {name: bound}} for name, bound in bounds.items())


def pgvector(_: Any, wanted: Wanted, ranges: Ranges) -> dict[str, Any] | None:
    """Return the lists themselves: ``==`` in a JSON path compares with each of their values.

    Its ``$in`` compares texts, for which 2 is not 2.0, and refuses bools.
    """
    by_key = {key: _alike(values) for key, values in wanted.items()}
    if not all(by_key.values()) or not all(map(str.isidentifier, (*by_key, *ranges))):
        return None
    clauses = [*_bounded(ranges)]
    return (
        {"$and": [*({key: each} for key, each in by_key.items()), *clauses]} if clauses else by_key
    )


def qdrant(store: Any, wanted: Wanted, ranges: Ranges) -> Any:
    """Return a ``models.Filter``: a match of texts and bools, and ranges for numbers.

    Its match of integers does not find 2.0, nor that of texts a number.
    """
    from qdrant_client import models

    def condition(key: str, value: Any) -> models.FieldCondition:
        if isinstance(value, bool | str):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        return models.FieldCondition(key=key, range=models.Range(gte=value, lte=value))

    must: list[Any] = []
    for key, values in wanted.items():
        alike, path = _alike(values), f"{store.metadata_payload_key}.{key}"
        if not alike or not key.isidentifier():
            return None
        must.append(models.Filter(should=[condition(path, value) for value in alike]))
    for key, bounds in ranges.items():
        if not key.isidentifier():
            return None
        named = {name.removeprefix("$"): bound for name, bound in bounds.items()}
        path = f"{store.metadata_payload_key}.{key}"
        must.append(models.FieldCondition(key=path, range=models.Range(**named)))
    return models.Filter(must=must)


def milvus(store: Any, wanted: Wanted, ranges: Ranges) -> str | None:
    """Return an expression of texts and integers: a field of integers takes no other numbers."""
    clauses: list[tuple[str, str, Any]] = [(key, "in", _alike(wanted[key])) for key in wanted]
    clauses += [(key, SIGNS[name], ranges[key][name]) for key in ranges for name in ranges[key]]
    for key, _, value in clauses:
        kinds = {*map(type, value if isinstance(value, list) else [value])}
        there = key.isidentifier() and (store.enable_dynamic_field or key in store.fields)
        if not there or kinds not in ({str}, {int}):
            return None
    told = (f"{key} {sign} {json.dumps(value, ensure_ascii=False)}" for key, sign, value in clauses)
    return " and ".join(told)


def single_values(_: Any, wanted: Wanted, ranges: Ranges) -> dict[str, Any] | None:
    """Return each key's only value."""
    if ranges or any(len(values) != 1 for values in wanted.values()):
        return None
    return {key: value for key, (value,) in wanted.items()}


def _alike(values: Sequence[Any]) -> list[Any]:
    """Return the values, and 1 for True and so on, which stores distinguish.

    Returns [] if one is not a text, bool or finite number: a store may hold it as something else.
    """
    alike = []
    for value in values:
        if not isinstance(value, str | int) and not (
            isinstance(value, float) and math.isfinite(value)
        ):
            return []
        alike.append(value)
        if value in (0, 1):
            alike.append(int(value) if isinstance(value, bool) else bool(value))
    return alike


@dataclass(frozen=True, kw_only=True)
class StoreCapabilities:
    """What one class of vector stores can do; the defaults apply to an unknown store.

    Attributes
    ----------
    scores
        Returns what the scores of a store in ``similarity_search_with_score`` are; None: not known.
    function
        Makes of a function of the metadata what the store takes as ``filter=``; None: it takes no
        functions.
    filter
        Makes of accepted values and bounds what it takes, where it takes no functions.
    size
        Returns the number of documents in a store that allocates as many as it is asked for and
        filters only the nearest ``fetch_k``; None: it does neither.
    added_metadata
        Metadata keys that the store adds to a document in place of its id; the id comes first.
    replaces
        Whether adding a document under an id that is there replaces it.
    documents
        Lists the documents of a store; None: it cannot.
    id
        Makes of a store and the id of a document that by which it gets it.
    argument
        Name of the argument of a search that takes a filter.
    """

    scores: Callable[[Any], ScoreKind | None] = lambda _: None
    function: Callable[[Callable[[Mapping[str, Any]], bool]], Any] | None = None
    filter: Callable[[Any, Wanted, Ranges], Any] = single_values
    size: Callable[[Any], int] | None = None
    added_metadata: tuple[str, ...] = ()
    replaces: bool = True
    documents: Callable[[Any], Iterable[Document]] | None = None
    id: Callable[[Any, str], Any] = lambda _, given: given
    argument: str = "filter"


def capabilities_of(store: VectorStore) -> StoreCapabilities:
    """Return those of a store's class, or of the nearest known one that it inherits."""
    return known_of(STORES, store) or StoreCapabilities()


def chroma_documents(store: Any) -> list[Document]:
    """Return the documents of a collection; other entries, as images, have no text."""
    held = store.get()
    rows = zip(held["ids"], held["documents"], held["metadatas"], strict=True)
    return [Document(text, id=id, metadata=more or {}) for id, text, more in rows if text]


def qdrant_documents(store: Any) -> Iterator[Document]:
    """Yield the documents of a collection."""
    for points in qdrant_pages(store.client.scroll, store.collection_name):
        for point in points:
            text = point.payload.get(store.content_payload_key, "")
            metadata = point.payload.get(store.metadata_payload_key) or {}
            yield Document(text, id=str(point.id), metadata=metadata)


def _distance(_: Any) -> ScoreKind:
    return "distance"


CHROMA = StoreCapabilities(scores=_distance, filter=chroma, documents=chroma_documents)

STORES: dict[str, StoreCapabilities] = {
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": StoreCapabilities(
        scores=lambda _: "cosine",
        function=lambda passes: lambda document: passes(document.metadata),
        documents=lambda store: store.get_by_ids([*store.store]),
    ),
    "langchain_community.vectorstores.faiss.FAISS": StoreCapabilities(
        scores=lambda store: "distance" if store.index.metric_type else "similarity",
        function=lambda passes: passes,
        size=lambda store: store.index.ntotal,
        documents=lambda store: store.get_by_ids([*store.index_to_docstore_id.values()]),
        replaces=False,  # it raises, and only after it has added the vector
    ),
    "langchain_chroma.vectorstores.Chroma": CHROMA,
    "langchain_community.vectorstores.chroma.Chroma": CHROMA,
    "langchain_postgres.vectorstores.PGVector": StoreCapabilities(
        scores=_distance, filter=pgvector
    ),
    "langchain_community.vectorstores.pgvector.PGVector": StoreCapabilities(scores=_distance),
    "langchain_qdrant.qdrant.QdrantVectorStore": StoreCapabilities(
        scores=lambda store: (
            QDRANT_SCORES.get(store.distance.value, "distance")
            if store.retrieval_mode.value == "dense"
            else "similarity"
        ),
        filter=qdrant,
        documents=qdrant_documents,
        id=lambda _, given: int(given) if given.isdecimal() else given,
        added_metadata=("_id", "_collection_name"),
    ),
    "langchain_qdrant.vectorstores.Qdrant": StoreCapabilities(
        added_metadata=("_id", "_collection_name")
    ),
    "langchain_milvus.vectorstores.milvus.Milvus": StoreCapabilities(
        filter=milvus,
        argument="expr",
        id=lambda store, given: int(given) if store.auto_id and given.isdecimal() else given,
        added_metadata=("pk",),
        replaces=False,  # it adds another of the same id
    ),
}
"""By qualified class name. Facts are from the source; filters were tried on the store."""
