"""Metadata filters as vector stores take them. Each way was tried on the store itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias

from langchain_core.documents import Document

from shared_core.index.metadata import Where, predicate, several

Wanted: TypeAlias = Mapping[str, Sequence[Any]]
"""Values of each key, of which any will do."""


def as_function_of_document(where: Where) -> Callable[[Document], bool]:
    """Return a filter as a function of a whole document."""
    passes = predicate(where)
    return lambda document: passes(document.metadata)


def of_mappings(translate: Callable[[Wanted], Any]) -> Callable[[Where], Any]:
    """Return what tells a store any filter, from what tells it the wanted values of each key.

    None stands for what it cannot be told, as every function, and for a filter that wants nothing.
    """

    @wraps(translate)
    def told(where: Where) -> Any:
        if where is None or callable(where):
            return None
        return translate({key: [*several(value)] for key, value in where.items()}) or None

    return told


@of_mappings
def chroma(wanted: Wanted) -> dict[str, Any] | None:
    """Return ``$in`` for each key, joined by ``$and``; a list must hold values of one type."""
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

    Its ``$in`` compares texts, so that 2 is not 2.0, and refuses truth values.
    """
    told = {key: _alike(values) for key, values in wanted.items()}
    return told if all(told.values()) and all(map(str.isidentifier, told)) else None


@of_mappings
def single_values(wanted: Wanted) -> dict[str, Any] | None:
    """Return each key's only value."""
    if any(len(values) != 1 for values in wanted.values()):
        return None
    return {key: value for key, (value,) in wanted.items()}


def nothing(_: Where) -> None:
    """Pass no filter: this store takes filter objects of its own.

    In one of those an unknown key would silently match nothing.
    """


def _alike(values: Sequence[Any]) -> list[Any]:
    """Return the values, with 1 for True and so on, which stores tell apart; [] if one is foreign.

    A store may hold a value of another kind as something else, or not at all.
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
