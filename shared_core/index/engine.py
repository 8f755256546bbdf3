"""What holds the passages and searches them: in this process, in a store of others, in a database.

One query takes one way: ``embed -> engine.pool -> fusion.rank -> place``. An engine does the second
step: it searches both legs and returns the union of what they find, each passage with both scores.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.index.metadata import Where, conditions
from shared_core.index.tokenize import tokenize
from shared_core.neighbour_spans import ChunkReader, DocumentNeighbours
from shared_core.types import Passage, Pool, Query, Tokenizer

Leg = Literal["dense", "sparse"]


@runtime_checkable
class Engine(Protocol):
    """Holds passages and searches them by meaning (dense) and by words (sparse).

    Every method but `documents` has an awaited version that gives the same. A subclass of this
    class gives the others; the awaited ones run them in a thread, unless it has its own.
    """

    @property
    @abstractmethod
    def embeds(self) -> bool:
        """Whether it embeds texts itself, so that a `Query` or `add` needs no vectors."""

    @abstractmethod
    def pool(self, queries: Sequence[Query], depth: int, *, where: Where = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        All pools come from one snapshot of the passages.
        """

    async def apool(
        self, queries: Sequence[Query], depth: int, *, where: Where = None
    ) -> list[Pool]:
        """Await `pool`."""
        return await asyncio.to_thread(self.pool, queries, depth, where=where)

    @abstractmethod
    def search_leg(
        self, leg: Leg, query: Query, k: int, *, where: Where = None
    ) -> list[tuple[Passage, float]]:
        """Return the best `k` passages of one leg with its scores, best first."""

    async def asearch_leg(
        self, leg: Leg, query: Query, k: int, *, where: Where = None
    ) -> list[tuple[Passage, float]]:
        """Await `search_leg`."""
        return await asyncio.to_thread(self.search_leg, leg, query, k, where=where)

    @abstractmethod
    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages, or replace those whose id is there; return the ids."""

    async def aadd(
        self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None
    ) -> list[str]:
        """Await `add`."""
        return await asyncio.to_thread(self.add, passages, vectors)

    @abstractmethod
    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages; return the ids that were there."""

    async def adelete(self, ids: Iterable[str]) -> list[str]:
        """Await `delete`."""
        return await asyncio.to_thread(self.delete, ids)

    @abstractmethod
    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, in that order."""

    async def aget(self, ids: Iterable[str]) -> list[Passage]:
        """Await `get`."""
        return await asyncio.to_thread(self.get, ids)

    @abstractmethod
    def documents(
        self, key: str, names: Sequence[Any], *, where: Where = None
    ) -> tuple[list[Passage], Vectors | None]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors.

        The vectors are None where they are out of reach.
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of passages."""

    async def acount(self) -> int:
        """Await `count`."""
        return await asyncio.to_thread(self.count)

    @abstractmethod
    def close(self) -> None:
        """Release connections and files; a second call does nothing."""

    async def aclose(self) -> None:
        """Await `close`."""
        await asyncio.to_thread(self.close)


def tokenizer_of(engine: Engine) -> Tokenizer | None:
    """Return the custom tokenizer of an engine or of a store's BM25 side; None: the default."""
    own: Tokenizer | None = getattr(getattr(engine, "sparse", engine), "tokenizer", None)
    return None if own is tokenize else own


def neighbours_in(engine: Engine, reader: ChunkReader, where: Where = None) -> DocumentNeighbours:
    """Return the passages of an engine that pass a filter as a source of neighbours.

    An index in memory keeps the documents that it has read, by filter, until it changes.
    """
    read = getattr(getattr(engine, "sparse", engine), "sources", None)
    kept = None if callable(where) else read
    # As lists, since NumPy leaves out most of a long array.
    passing = repr(conditions(where) if isinstance(where, Mapping) else where)
    return DocumentNeighbours(partial(engine.documents, where=where), reader, kept, passing)
