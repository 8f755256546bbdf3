"""LlamaIndex's metadata filters as the core's, so that one filter holds in both legs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard, cast

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

Predicate: TypeAlias = Callable[[Mapping[str, Any]], bool]

SOURCE = "llamaindex_ref_doc_id"
"""Key of the source document in `filterable`; it does not collide with a user's key."""

_NAMES_OF_SOURCE = frozenset({"doc_id", "ref_doc_id", "document_id"})
"""LlamaIndex's names of the source document in filters, whatever the metadata say."""


def filterable(node: BaseNode) -> dict[str, Any]:
    """Return what a filter sees of a node: its metadata, and the id of its source document.

    Without a source document the id is ``"None"``, as in LlamaIndex's stores.
    """
    return {**node.metadata, SOURCE: node.ref_doc_id or "None"}


def where(filters: MetadataFilters | None) -> Mapping[str, Any] | Predicate | None:
    """Return a filter for the core: wanted values where these are enough, else a `predicate`.

    The core looks up wanted values by column, but has to call a function for every passage.
    Both apply to the metadata that `filterable` returns.

    Raises
    ------
    ValueError
        If `filters` is neither `MetadataFilters` nor None.
    """
    if filters is not None and not isinstance(filters, MetadataFilters):
        raise ValueError(f"filters must be MetadataFilters, got {filters!r}")
    if filters is None or not filters.filters:
        return None
    equalities = [part for part in filters.filters if _is_equality(part)]
    wanted = {_column(part.key): part.value for part in equalities}
    all_must_hold = filters.condition in (FilterCondition.AND, None)
    if all_must_hold and len(wanted) == len(equalities) == len(filters.filters):
        return wanted
    return predicate(filters)


def _column(key: str) -> str:
    return SOURCE if key in _NAMES_OF_SOURCE else key


def _is_equality(part: MetadataFilter | MetadataFilters) -> TypeGuard[MetadataFilter]:
    if isinstance(part, MetadataFilters) or part.value is None or part.key.startswith("$"):
        return False
    several = isinstance(part.value, list)
    return part.operator == (FilterOperator.IN if several else FilterOperator.EQ)


def predicate(filters: MetadataFilters | None) -> Predicate | None:
    """Return a function that says whether `filterable` metadata pass; None for no filter.

    Operators are those of LlamaIndex's in-memory store, whose matching is used; filters may be
    nested, which that store refuses.

    Raises
    ------
    TypeError
        From the returned function, if an operator does not fit the type of a value.
    """
    if filters is None or not filters.filters:
        return None
    parts = [_part(part) for part in filters.filters]
    if filters.condition == FilterCondition.OR:
        return lambda metadata: any(part(metadata) for part in parts)
    if filters.condition == FilterCondition.NOT:
        return lambda metadata: not any(part(metadata) for part in parts)
    return lambda metadata: all(part(metadata) for part in parts)


def _part(part: MetadataFilter | MetadataFilters) -> Predicate:
    if isinstance(part, MetadataFilters):
        return predicate(part) or _everything
    part = part.model_copy(update={"key": _column(part.key)})
    # The store looks metadata up by node id; here the metadata itself takes the id's place.
    return cast(
        Predicate,
        build_metadata_filter_fn(
            cast(Callable[[str], Mapping[str, Any]], _itself), MetadataFilters(filters=[part])
        ),
    )


def _itself(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    return metadata


def _everything(metadata: Mapping[str, Any]) -> bool:
    return True
