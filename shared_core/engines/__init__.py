"""Engines: what holds the passages and searches them, behind one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared_core.index.engine import Engine, InThreads, Leg

if TYPE_CHECKING:
    from shared_core.engines.collection import CollectionEngine

__all__ = ["Engine", "InThreads", "Leg", "connect"]

SCHEMES = ("postgresql", "postgres")


def connect(url: str, collection: str = "posrag", **options: Any) -> CollectionEngine:
    """Return the engine that an address stands for.

    Parameters
    ----------
    url
        ``postgresql://user:password@host:port/database``.
    collection
        Its passages; made when some are first added.
    **options
        Of the engine: see `shared_core.engines.postgres.PostgresEngine`. Those of a collection that
        is there are its own unless given.

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
    if not separator or scheme not in SCHEMES:
        raise ValueError(
            f"no engine has an address of the kind {scheme!r}: give one that begins with "
            "postgresql://"
        )
    from shared_core.engines.collection import OtherOptionsError
    from shared_core.engines.postgres import PostgresEngine

    try:
        return PostgresEngine(url, collection, **options)
    except OtherOptionsError as error:
        return PostgresEngine(url, collection, **error.own | options)
