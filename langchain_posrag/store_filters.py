"""Metadata filters as vector stores take them. Each form was tried on the store itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.documents import Document

from shared_core.index.metadata import Where, predicate, wanted_values

Wanted: TypeAlias = Mapping[str, Sequence[Any]]
"""Metadata key -> accepted values."""

StoreFilter: TypeAlias = Callable[[Any, Where], Any]
"""Takes a store and a filter, and returns what the store takes as ``filter=``.

None if the store cannot apply it. What the store lets through too much is filtered here.
"""


def as_function(_: Any, where: Where) -> Callable[[Mapping[str, Any]], bool]:
    """Return a filter as a function of the metadata."""
    return predicate(where)


def as_function_of_document(_: Any, where: Where) -> Callable[[Document], bool]:
    """Return a filter as a function of a whole document."""
    passes = predicate(where)
    return lambda document: passes(document.metadata)


def of_mappings(translate: Callable[[Any, Wanted], Any]) -> StoreFilter:
    """Turn a translation of accepted values into one of any filter; None for functions."""

    @wraps(translate)
    def translated(store: Any, where: Where) -> Any:
        if where is None or callable(where):
            return None
        wanted = {key: [*wanted_values(value)] for key, value in where.items()}
        return translate(store, wanted) or None

    return translated


@of_mappings
def chroma(_: Any, wanted: Wanted) -> dict[str, Any] | None:
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
    return {"$and": clauses} if len(clauses) > 1 else dict(*clauses)


@of_mappings
def pgvector(_: Any, wanted: Wanted) -> dict[str, Any] | None:
    """Return the lists themselves: ``==`` in a JSON path compares with each of their values.

    Its ``$in`` compares texts, for which 2 is not 2.0, and refuses bools.
    """
    by_key = {key: _alike(values) for key, values in wanted.items()}
    return by_key if all(by_key.values()) and all(map(str.isidentifier, by_key)) else None


@of_mappings
def qdrant(store: Any, wanted: Wanted) -> Any:
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
    return models.Filter(must=must) if must else None


@of_mappings
def single_values(_: Any, wanted: Wanted) -> dict[str, Any] | None:
    """Return each key's only value."""
    if any(len(values) != 1 for values in wanted.values()):
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
