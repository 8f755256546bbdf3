"""Engines: what holds the passages and searches them, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shared_core.engines.collection import CollectionEngine, OtherOptionsError
from shared_core.index.engine import Engine, Leg

__all__ = ["Engine", "Leg", "connect"]

ENGINES = {
    "postgresql": ("postgres", "PostgresEngine"),
    "postgres": ("postgres", "PostgresEngine"),
    "qdrant": ("qdrant", "QdrantEngine"),
    "lancedb": ("lancedb", "LanceEngine"),
    "milvus": ("milvus", "MilvusEngine"),
}
"""Scheme of an address, up to a plus sign -> module and class."""


def named_by(url: str) -> tuple[str, str]:
    """Return the module and the class of the engine that an address stands for.

    Raises
    ------
    ValueError
        If no engine has such an address.
    """
    scheme, separator, _ = url.partition("://")
    kind = scheme.partition("+")[0]
    if not separator or kind not in ENGINES:
        raise ValueError(
            f"no engine has an address of the kind {scheme!r}: give one that begins with "
            "postgresql://, qdrant://, lancedb:// or milvus://"
        )
    return ENGINES[kind]


def connect(url: str, collection: str = "posrag", **options: Any) -> CollectionEngine:
    """Return the engine that an address stands for.

    Parameters
    ----------
    url
        ``postgresql://user:password@host:port/database``, ``qdrant://host:port``,
        ``lancedb:///folder``, ``lancedb+s3://bucket/folder``, or ``milvus://host:port``.
    collection
        Its passages; made when some are first added.
    **options
        Of the engine: see the class in the module of `shared_core.engines` that is called like the
        scheme. Those of a collection that is there are its own unless given.

    Raises
    ------
    ValueError
        If no engine has such an address, or an option is out of range.
    EngineError
        If what it leads to does not answer.
    MissingExtraError
        If the engine's driver is not installed.
    """
    module, name = named_by(url)
    engine: Callable[..., CollectionEngine] = getattr(
        import_module(f"shared_core.engines.{module}"), name
    )
    try:
        return engine(url, collection, **options)
    except OtherOptionsError as error:
        return engine(url, collection, **error.own | options)
