"""LlamaIndex's metadata filters as the core's, so that one filter holds in both legs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from shared_core.index.metadata import Where
from shared_core.neighbour_spans.places import SOURCE, WITHOUT_SOURCE

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]

_BOUNDS = {
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
}

_NAMES_OF_SOURCE = frozenset({"doc_id", "ref_doc_id", "document_id"})
"""LlamaIndex's names of the source document in filters, whatever the metadata say."""


def filterable(node: BaseNode) -> dict[str, Any]:
    """Return what a filter sees of a node: its metadata, and the id of its source document."""
    return {**node.metadata, SOURCE: node.ref_doc_id or WITHOUT_SOURCE}


@dataclass(frozen=True, slots=True, repr=False)
class _Matching:
    """A function that says which filters would have been a mapping: a database takes no other."""

    matches: Predicate

    def __call__(self, metadata: Mapping[str, Any]) -> bool:
        return self.matches(metadata)

    def __repr__(self) -> str:
        return (
            "MetadataFilters that are no mapping (== a value, IN a list, or a number compared by "
            "<, <=, > or >=, joined by AND, are one)"
        )


def where(filters: MetadataFilters | Any | None, *, own: bool = False) -> Where:
    """Return a filter for the core: wanted values where these are enough, else a function.

    The core looks up wanted values by column, but has to call a function for every passage. Both
    apply to the metadata that `filterable` returns. The function matches as LlamaIndex's in-memory
    store does, and takes nested filters, which that store refuses; it raises TypeError if an
    operator does not fit the type of a value. With `own`, what is not `MetadataFilters` stays as it
    is: a database or store refuses what it does not understand.

    Raises
    ------
    ValueError
        If `filters` is neither `MetadataFilters` nor None, unless `own`.
    """
    if filters is None:
        return None
    if not isinstance(filters, MetadataFilters):
        if own:
            return cast(Where, filters)
        raise ValueError(
            f"filters must be MetadataFilters, got {filters!r}; an index in Chroma, Qdrant, Milvus "
            "or LanceDB also takes a filter of theirs, and a database a mapping"
        )
    if not filters.filters:
        return None
    wanted: dict[str, Any] = {}
    for part in filters.filters:
        if (condition := _condition(part)) is None:
            break
        key, value = condition
        former = wanted.get(key, {})
        if key in wanted and not (
            isinstance(former, dict)
            and isinstance(value, dict)
            and not former.keys() & value.keys()
        ):
            break
        wanted[key] = former | value if isinstance(value, dict) else value
    else:
        if filters.condition in (FilterCondition.AND, None):
            return wanted
    return _Matching(_predicate(filters))


def _column(key: str) -> str:
    return SOURCE if key in _NAMES_OF_SOURCE else key


def _condition(part: MetadataFilter | MetadataFilters) -> tuple[str, Any] | None:
    """Return key and wanted value or bounds, as the core has them; None if it has none such."""
    if isinstance(part, MetadataFilters) or part.value is None or part.key.startswith("$"):
        return None
    key, value = _column(part.key), part.value
    if part.operator == (FilterOperator.IN if isinstance(value, list) else FilterOperator.EQ):
        return key, value
    bound = _BOUNDS.get(part.operator)
    return (key, {bound: value}) if bound and isinstance(value, int | float) else None


def _predicate(part: MetadataFilter | MetadataFilters) -> Predicate:
    if isinstance(part, MetadataFilter):
        one = MetadataFilters(filters=[part.model_copy(update={"key": _column(part.key)})])
        # The store looks metadata up by node id; here the metadata itself takes the id's place.
        return cast(Predicate, build_metadata_filter_fn(lambda metadata: cast(Any, metadata), one))
    parts = [_predicate(each) for each in part.filters]
    if part.condition == FilterCondition.OR and parts:
        return lambda metadata: any(each(metadata) for each in parts)
    if part.condition == FilterCondition.NOT:
        return lambda metadata: not any(each(metadata) for each in parts)
    return lambda metadata: all(each(metadata) for each in parts)
