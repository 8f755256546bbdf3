"""Engines: what holds the passages and searches them, behind one protocol."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared_core.index.engine import Engine, InThreads, Leg

__all__ = ["Engine", "InThreads", "Leg", "connect"]

ENGINES = {
    "postgresql": ("postgres", "PostgresEngine"),
    "postgres": ("postgres", "PostgresEngine"),
    "qdrant": ("qdrant", "QdrantEngine"),
    "milvus": ("milvus", "MilvusEngine"),
}
"""Scheme of an address -> module and class."""


def connect(url: str, collection: str = "posrag", **options: Any) -> Engine:
    """Return the engine that an address stands for.

    Parameters
    ----------
    url
        ``postgresql://user:password@host:port/database``, ``qdrant://host:port``, or
        ``milvus://host:port``.
    collection
        Its passages; made when some are first added.
    **options
        Of the engine: see `PostgresEngine`, `QdrantEngine` or `MilvusEngine` in the module of
        `shared_core.engines` that is called like the scheme.

    Raises
    ------
    ValueError
        If no engine has such an address, or an option is out of range.
    EngineError
        If what it leads to does not answer.
    MissingExtraError
        If the engine's driver is not installed.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in ENGINES:
        raise ValueError(
            f"no engine has an address of the kind {scheme!r}: give one that begins with "
            "postgresql://, qdrant:// or milvus://"
        )
    module, name = ENGINES[scheme]
    engine: Engine = getattr(import_module(f"shared_core.engines.{module}"), name)(
        url, collection, **options
    )
    return engine
