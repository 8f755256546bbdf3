"""Metadata filters as vector stores take them. Each entry was tried on the store itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from shared_core.index.metadata import Where, several

Wanted: TypeAlias = Mapping[str, Sequence[Any]]
"""Values of each key, of which any will do."""


def native_filter(class_names: Sequence[str], where: Where) -> Any:
    """Return a filter as a store takes it; None if it cannot be told all of it.

    Chroma and PGVector are told every mapping of texts and finite numbers; other stores are told
    single values, as they are. No store is told a function.

    Parameters
    ----------
    class_names
        The store's class and those it inherits from.
    where
        The filter.
    """
    if where is None or callable(where):
        return None
    wanted = {key: [*several(value)] for key, value in where.items()}
    translate = next((LANGUAGES[name] for name in class_names if name in LANGUAGES), single_values)
    return translate(wanted) or None


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


def pgvector(wanted: Wanted) -> dict[str, Any] | None:
    """Return the lists themselves: ``==`` in a JSON path compares with each of their values.

    Its ``$in`` compares texts, so that 2 is not 2.0, and refuses truth values.
    """
    told = {key: _alike(values) for key, values in wanted.items()}
    return told if all(told.values()) and all(map(str.isidentifier, told)) else None


def single_values(wanted: Wanted) -> dict[str, Any] | None:
    """Return each key's only value."""
    if any(len(values) != 1 for values in wanted.values()):
        return None
    return {key: value for key, (value,) in wanted.items()}


def nothing(_: Wanted) -> None:
    """Return None: the store takes objects of its own, and a wrong key in one finds nothing."""


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


LANGUAGES: dict[str, Callable[[Wanted], dict[str, Any] | None]] = {
    "langchain_chroma.vectorstores.Chroma": chroma,
    "langchain_community.vectorstores.chroma.Chroma": chroma,
    "langchain_postgres.vectorstores.PGVector": pgvector,
    "langchain_qdrant.qdrant.QdrantVectorStore": nothing,
}
"""How filters are told, by the name of the store's class."""
