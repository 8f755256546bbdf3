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


def as_function_of_document(where: Where) -> Callable[[Document], bool]:
    """Return a filter as a function of a whole document."""
    passes = predicate(where)
    return lambda document: passes(document.metadata)


def of_mappings(translate: Callable[[Wanted], Any]) -> Callable[[Where], Any]:
    """Turn a translation of accepted values into one of any filter.

    It returns None for a filter that the store cannot apply, as a function, and for an empty one.
    """

    @wraps(translate)
    def translated(where: Where) -> Any:
        if where is None or callable(where):
            return None
        return translate({key: [*wanted_values(value)] for key, value in where.items()}) or None

    return translated


@of_mappings
def chroma(wanted: Wanted) -> dict[str, Any] | None:
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
def pgvector(wanted: Wanted) -> dict[str, Any] | None:
    """Return the lists themselves: ``==`` in a JSON path compares with each of their values.

    Its ``$in`` compares texts, for which 2 is not 2.0, and refuses bools.
    """
    by_key = {key: _alike(values) for key, values in wanted.items()}
    return by_key if all(by_key.values()) and all(map(str.isidentifier, by_key)) else None


@of_mappings
def single_values(wanted: Wanted) -> dict[str, Any] | None:
    """Return each key's only value."""
    if any(len(values) != 1 for values in wanted.values()):
        return None
    return {key: value for key, (value,) in wanted.items()}


def nothing(_: Where) -> None:
    """Pass no filter: this store takes its own filter objects.

    An unknown key in one of them would silently match nothing.
    """


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
