"""A vector store of others as the dense leg, with BM25 over the same passages next to it."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_bool, check_choice, check_count, check_several
from shared_core.index.engine import InThreads, Leg
from shared_core.index.passages import PassageIndex
from shared_core.neighbour_spans import ChunkReader, ChunkSource
from shared_core.types import Passage, Pool, Query

T = TypeVar("T")

Hits: TypeAlias = Sequence[tuple[Passage, float | None]]
"""Passages with their scores, best first; None or NaN: it has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Store:
    """How a store is reached: plain functions. What is None, the store does not offer.

    Attributes
    ----------
    search
        Takes a query, a depth and a filter, and returns that many hits that pass it.
    rescore
        Takes a query and passages, and returns the cosine of each.
    add
        Takes passages with ids, writes them, and returns the ids that they have in the store.
    delete
        Takes ids that are in the store.
    get
        Takes ids, and returns the passages that are there.
    asearch, arescore, aadd, adelete, aget
        Awaited versions; by default the others, in a thread.
    """

    search: Callable[[Query, int, Any], Hits]
    asearch: Callable[[Query, int, Any], Awaitable[Hits]] | None = None
    rescore: Callable[[Query, Sequence[Passage]], npt.ArrayLike] | None = None
    arescore: Callable[[Query, Sequence[Passage]], Awaitable[npt.ArrayLike]] | None = None
    add: Callable[[Sequence[Passage]], Sequence[str]] | None = None
    aadd: Callable[[Sequence[Passage]], Awaitable[Sequence[str]]] | None = None
    delete: Callable[[Sequence[str]], object] | None = None
    adelete: Callable[[Sequence[str]], Awaitable[object]] | None = None
    get: Callable[[Sequence[str]], Sequence[Passage]] | None = None
    aget: Callable[[Sequence[str]], Awaitable[Sequence[Passage]]] | None = None


@dataclass(slots=True)
class _Found:
    """What both legs found; `alone` are the ids of the last passages, which only BM25 did."""

    passages: list[Passage]
    dense: Scores
    alone: list[str]

    def keep(self, stored: Sequence[Passage]) -> None:
        """Drop what only BM25 found and is not in the store any more."""
        there = {passage.id for passage in stored}
        first = len(self.passages) - len(self.alone)
        kept = [at for at, each in enumerate(self.passages) if at < first or each.id in there]
        self.alone = [id for id in self.alone if id in there]
        self.passages, self.dense = [self.passages[at] for at in kept], self.dense[kept]


class StoreEngine(InThreads):
    """A store that finds and scores passages by meaning, and BM25 over the same passages.

    A hit of the store is the BM25 side's passage of its id, or else one of equal text, which then
    counts: its id, metadata and source. Where several are equal, the one whose metadata agree most
    does; each stands for one hit. If only the text of an id differs, the store's is taken.

    A store gives scores to the passages it finds and to no others: what only BM25 found has none,
    and counts with the lowest (`Pool`), unless the store has ``rescore``. Then it gets its cosine,
    and so do all the others where the store's scores are no cosines. BM25 scores are always exact.
    Equal scores keep the order of the store, followed by that of BM25.

    A filter that is neither a mapping nor a function is one of the store's own: BM25 cannot apply
    it, so that only what the store finds is returned.

    Two writers that change one id at once may leave the version of one in the store and that of the
    other in BM25: write an id from one place at a time, or write it again.

    Parameters
    ----------
    store
        The dense leg.
    sparse
        The passages for BM25.
    higher_is_better
        Direction of the store's scores; False for distances, which are negated.
    cosines
        Whether the store's scores are cosines.
    drop_deleted
        Leave out what only BM25 found and the store does not have any more, which takes one call
        of its ``get`` a query. The ids of both sides must be the same.

    Raises
    ------
    ValueError
        If `higher_is_better` is not a bool, or `drop_deleted` is set and the store has no ``get``.
    """

    def __init__(
        self,
        store: Store,
        sparse: PassageIndex,
        *,
        higher_is_better: bool = True,
        cosines: bool = False,
        drop_deleted: bool = False,
    ) -> None:
        if check_bool(drop_deleted, "drop_deleted") and store.get is None and store.aget is None:
            raise ValueError("drop_deleted needs a store that returns passages by id")
        self.store, self.sparse = store, sparse
        self.higher_is_better = check_bool(higher_is_better, "higher_is_better")
        self.cosines, self.drop_deleted = cosines, drop_deleted
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``."""
        return {
            key: value for key, value in vars(self).items() if key not in ("_texts", "_reading")
        }

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._texts: dict[str, dict[str, None]] | None = None
        self._reading = threading.Lock()

    @property
    def embeds(self) -> bool:
        """True: the store embeds the texts."""
        return True

    def pool(self, queries: Sequence[Query], depth: int, *, where: Any = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        Raises
        ------
        ValueError
            If `depth` is below 1, the filter is malformed, or `drop_deleted` is set and the store
            has the passages under other ids.
        """
        return [self._pool(query, check_count(depth, "depth"), where) for query in queries]

    async def apool(self, queries: Sequence[Query], depth: int, *, where: Any = None) -> list[Pool]:
        """Await `pool`, with the queries and both legs side by side."""
        depth = check_count(depth, "depth")
        return await asyncio.gather(*(self._apool(query, depth, where) for query in queries))

    def _pool(self, query: Query, depth: int, where: Any) -> Pool:
        store = self.store
        hits = store.search(query, depth, where)
        found = self._joined(hits, self._best(query, depth, where))
        if self.drop_deleted and found.alone and store.get:
            found.keep(store.get(found.alone))
        if store.rescore and (rows := self._unscored(found)):
            passages = [found.passages[row] for row in rows]
            found.dense[rows] = store.rescore(query, passages)
        return self._scored(query, found)

    async def _apool(self, query: Query, depth: int, where: Any) -> Pool:
        store = self.store
        hits, best = await asyncio.gather(
            _called(store.asearch, store.search, query, depth, where),
            asyncio.to_thread(self._best, query, depth, where),
        )
        found = await asyncio.to_thread(self._joined, hits, best)
        if self.drop_deleted and found.alone:
            found.keep(await _called(store.aget, store.get, found.alone))
        if (store.arescore or store.rescore) and (rows := self._unscored(found)):
            passages = [found.passages[row] for row in rows]
            found.dense[rows] = await _called(store.arescore, store.rescore, query, passages)
        return await asyncio.to_thread(self._scored, query, found)

    def _best(self, query: Query, depth: int, where: Any) -> list[Passage]:
        if where is not None and not isinstance(where, Mapping) and not callable(where):
            return []  # the store's own kind of filter
        return [passage for passage, _ in self.sparse.best(query.text, depth, where=where)]

    def _joined(self, hits: Hits, best: Sequence[Passage]) -> _Found:
        """Put the hits of the store, and what only BM25 found after them."""
        if hits and not self.sparse.count():
            warnings.warn(
                "BM25 has no passages and scores 0 everywhere: give it those of the store",
                stacklevel=2,
            )
        given = [passage for passage, _ in hits]
        known = self._known(given)
        if self.drop_deleted and known and all(given[at].id != known[at].id for at in known):
            raise ValueError(
                "the store has the passages under other ids than BM25, so that none can be looked "
                "up: give BM25 passages with the store's ids, or leave drop_deleted out"
            )
        pool: dict[str, tuple[Passage, float]] = {}
        sign = 1.0 if self.higher_is_better else -1.0
        for at, (passage, score) in enumerate(hits):
            passage = known.get(at, passage)
            value = np.nan if score is None else sign * float(score)
            pool.setdefault(passage.id or f"\0{at}", (passage, value))
        alone = [passage for passage in best if passage.id not in pool]
        passages = [passage for passage, _ in pool.values()] + alone
        dense = [value for _, value in pool.values()] + [np.nan] * len(alone)
        return _Found(passages, np.array(dense, np.float64), [passage.id for passage in alone])

    def _known(self, hits: Sequence[Passage]) -> dict[int, Passage]:
        """Return position -> the same passage of the BM25 side; see the class."""
        by_id = {passage.id: passage for passage in self.sparse.get([hit.id for hit in hits])}
        known = {
            at: by_id[hit.id]
            for at, hit in enumerate(hits)
            if hit.id in by_id and by_id[hit.id].text == hit.text
        }
        pairs = [
            (-_agreement(hit, twin), at, twin)
            for at, hit in enumerate(hits)
            if hit.id not in by_id
            for twin in self._with_text(hit.text)
            if twin.id not in by_id
        ]
        taken: set[str] = set()
        for _, at, twin in sorted(pairs, key=lambda pair: pair[:2]):
            if at not in known and twin.id not in taken:
                taken.add(twin.id)
                known[at] = twin
        return known

    def _with_text(self, text: str) -> list[Passage]:
        """Return the passages of that text on the BM25 side, of which all are read only once."""
        with self._reading:
            if self._texts is None:
                self._texts = {}
                self._read(self.sparse.passages)
            ids = [*self._texts.get(text, ())]
        return [passage for passage in self.sparse.get(ids) if passage.text == text]

    def _read(self, passages: Iterable[Passage]) -> None:
        if self._texts is not None:
            for passage in passages:
                self._texts.setdefault(passage.text, {})[passage.id] = None

    def _unscored(self, found: _Found) -> list[int]:
        """Return the positions to score again: all, if the others are no cosines."""
        if not self.cosines:
            return [*range(len(found.passages))] if found.alone else []
        return np.isnan(found.dense).nonzero()[0].tolist()

    def _scored(self, query: Query, found: _Found) -> Pool:
        sparse = self.sparse.scores(query.text, found.passages)
        nearest = np.nanmax(found.dense, initial=-1.0) if self.cosines and len(sparse) else None
        return Pool(
            found.passages,
            found.dense,
            sparse,
            complete=False,  # nobody says whether the store's search is exact
            nearest=nearest and float(nearest),
            query=query.text.strip(),
        )

    def search_leg(
        self, leg: Leg, query: Query, k: int, *, where: Any = None
    ) -> list[tuple[Passage, float]]:
        """Return the best `k` passages of one leg with its scores, best first.

        Raises
        ------
        ValueError
            As `pool`, and if there is no such leg.
        """
        check_choice(leg, "leg", Leg)
        if leg == "sparse":
            return self.sparse.best(query.text, check_count(k, "k"), where=where)
        found = self._joined(self.store.search(query, check_count(k, "k"), where), [])
        return [*zip(found.passages, found.dense.tolist(), strict=True)]

    def neighbours(self, reader: ChunkReader | None = None, *, where: Any = None) -> ChunkSource:
        """Return the passages of the BM25 side as a source of neighbours, as they are now.

        The store's vectors are out of reach, so continuity is unknown.
        """
        return self.sparse.neighbours(reader, where=where)

    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages to both sides, or replace those whose id is there; return their ids.

        BM25 goes first, since it can be undone: if the store raises, both are as they were, as far
        as the store's own ``add`` is all or nothing.

        Raises
        ------
        ValueError
            If a passage is malformed, an id occurs twice, vectors are given, or the store cannot
            be written.
        """
        add = _offered(self.store.add, "add")
        _refuse_vectors(vectors)
        if not passages:  # some stores raise for none
            return []
        former = self._same(self._stored([passage.id for passage in passages]))
        undo = self._add_to_sparse(passages, former)
        try:
            ids = [*add(passages)]
        except BaseException:
            undo()
            raise
        return self._renamed(passages, ids)

    async def aadd(
        self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None
    ) -> list[str]:
        """Await `add`, which is finished even if the caller is cancelled meanwhile."""
        _offered(self.store.aadd or self.store.add, "add")
        _refuse_vectors(vectors)
        if not passages:
            return []
        stored = await self._astored([passage.id for passage in passages])

        async def write() -> list[str]:
            former = await asyncio.to_thread(self._same, stored)
            undo = await asyncio.to_thread(self._add_to_sparse, passages, former)
            try:
                ids = await _called(self.store.aadd, self.store.add, passages)
            except BaseException:
                await asyncio.to_thread(undo)
                raise
            return await asyncio.to_thread(self._renamed, passages, [*ids])

        return await shielded(write())

    def _add_to_sparse(
        self, passages: Sequence[Passage], former: Sequence[Passage]
    ) -> Callable[[], object]:
        """Add to the BM25 side, which may hold replaced passages under other ids; return undo."""
        ids = [passage.id for passage in passages]
        former = [*self.sparse.get(ids), *(each for each in former if each.id not in ids)]
        self._put(passages)
        self.sparse.delete([passage.id for passage in former if passage.id not in ids])

        def undo() -> None:
            self.sparse.delete(ids)
            self._put(former)

        return undo

    def _renamed(self, passages: Sequence[Passage], ids: Sequence[str]) -> list[str]:
        """Give the BM25 side the ids that the store chose."""
        if [passage.id for passage in passages] != ids:
            self.sparse.delete([passage.id for passage in passages])
            self._put([replace(p, id=id) for p, id in zip(passages, ids, strict=True)])
        return [*ids]

    def _put(self, passages: Sequence[Passage]) -> None:
        self.sparse.add(passages)
        with self._reading:
            self._read(passages)

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages from both sides; return the ids that either had.

        Raises
        ------
        ValueError
            If `ids` is a single string, or the store cannot be written.
        """
        delete, ids = _offered(self.store.delete, "delete"), _listed(ids)
        if stored := self._stored(ids):
            delete([passage.id for passage in stored])
        return self._delete_from_sparse(ids, stored)

    async def adelete(self, ids: Iterable[str]) -> list[str]:
        """Await `delete`, which is finished even if the caller is cancelled meanwhile."""
        _offered(self.store.adelete or self.store.delete, "delete")
        ids = _listed(ids)
        stored = await self._astored(ids)

        async def write() -> list[str]:
            if stored:
                there = [passage.id for passage in stored]
                await _called(self.store.adelete, self.store.delete, there)
            return await asyncio.to_thread(self._delete_from_sparse, ids, stored)

        return await shielded(write())

    def _delete_from_sparse(self, ids: Sequence[str], stored: Sequence[Passage]) -> list[str]:
        here = {*self.sparse.delete([*ids, *(passage.id for passage in self._same(stored))])}
        there = {passage.id for passage in stored}
        return [id for id in dict.fromkeys(ids) if id in here or id in there]

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, those of the store if it can give them."""
        ids = _listed(ids)
        return self._either(ids, self._stored(ids))

    async def aget(self, ids: Iterable[str]) -> list[Passage]:
        """Await `get`."""
        ids = _listed(ids)
        stored = await self._astored(ids)
        return await asyncio.to_thread(self._either, ids, stored)

    def _either(self, ids: Sequence[str], stored: Sequence[Passage]) -> list[Passage]:
        found = {passage.id: passage for passage in [*self.sparse.get(ids), *stored]}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    def _same(self, stored: Sequence[Passage]) -> list[Passage]:
        """Return the passages of the BM25 side that are these of the store."""
        return [*self._known(stored).values()]

    def _stored(self, ids: Sequence[str]) -> Sequence[Passage]:
        """Return the passages of the store; if it cannot give them, those of the BM25 side."""
        get = self.store.get or self.sparse.get
        return get(ids) if ids else ()  # some stores raise for none

    async def _astored(self, ids: Sequence[str]) -> Sequence[Passage]:
        get = self.store.get or self.sparse.get
        return await _called(self.store.aget, get, ids) if ids else ()

    def find(self, key: str, values: Sequence[str]) -> list[str]:
        """Return the ids of passages of the BM25 side by their metadata."""
        return self.sparse.find(key, values)

    def count(self) -> int:
        """Return the number of passages of the BM25 side."""
        return self.sparse.count()

    def close(self) -> None:
        """Do nothing: the store is the caller's."""


async def _called(
    awaited: Callable[..., Awaitable[T]] | None, plain: Callable[..., T] | None, *args: Any
) -> T:
    """Await the one function, or run the other in a thread."""
    if awaited is not None:
        return await awaited(*args)
    return await asyncio.to_thread(_offered(plain, "function"), *args)


def _offered(function: Callable[..., T] | None, name: str) -> Callable[..., T]:
    if function is None:
        raise ValueError(f"the store has no {name}: change it itself, and make the engine anew")
    return function


def _refuse_vectors(vectors: object) -> None:
    if vectors is not None:
        raise ValueError("the store embeds the passages itself: leave out their vectors")


def _listed(ids: Iterable[str]) -> list[str]:
    check_several(ids)
    return [*ids]


def _agreement(one: Passage, other: Passage) -> int:
    """Return how many metadata are the same, apart from what stores make of their types."""
    return len({*_plain(one)} & {*_plain(other)})


def _plain(passage: Passage) -> Iterable[tuple[str, str]]:
    for key, value in passage.metadata.items():
        whole = isinstance(value, float) and value.is_integer()
        yield str(key), str(int(value) if whole else value)


_unfinished: set[asyncio.Task[Any]] = set()


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Await work that goes on even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)  # the event loop holds it only weakly
    task.add_done_callback(_unfinished.discard)
    return await asyncio.shield(task)
