"""A vector store of others as the dense leg, with BM25 over the same passages next to it."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_bool, check_choice, check_count, check_several
from shared_core.index.engine import Engine, Leg
from shared_core.index.metadata import BOUNDS, predicate
from shared_core.index.passages import PassageIndex, check_passages
from shared_core.types import Passage, Pool, Query

T = TypeVar("T")
Item = TypeVar("Item")

Hits: TypeAlias = Sequence[tuple[Passage, float | None]]
"""Passages with their scores, best first; None or NaN: it has none."""


Plain: TypeAlias = Callable[..., T]
Awaited: TypeAlias = Callable[..., Awaitable[T]] | None


ScoreKind: TypeAlias = Literal["cosine", "similarity", "distance"]
"""What the scores of a store are; higher is better but for distances."""

QDRANT_SCORES: Mapping[str, ScoreKind] = {"Cosine": "cosine", "Dot": "similarity"}
"""Those of Qdrant by its name of the distance; by another one they are distances."""


def qdrant_pages(
    scroll: Callable[..., Any], collection: str, *, limit: int = 1000, **options: Any
) -> Iterator[list[Any]]:
    """Yield the points of a collection of Qdrant in batches; `scroll` is its client's method."""
    offset = None
    while True:
        points, offset = scroll(collection, limit=limit, offset=offset, **options)
        yield points
        if offset is None:
            return


class Call(Protocol):
    """One of two ways to call a function: `here`, or `awaiting`."""

    async def __call__(self, plain: Plain[T], awaited: Awaited[T], *args: Any, **options: Any) -> T:
        """Call the plain function, or its awaited version; None: the plain one, in a thread."""


async def here(plain: Plain[T], awaited: Awaited[T], *args: Any, **options: Any) -> T:
    """Call the plain function, so that nothing is waited for; see `finished`."""
    return plain(*args, **options)


async def awaiting(plain: Plain[T], awaited: Awaited[T], *args: Any, **options: Any) -> T:
    """Call the awaited function; if there is none, the plain one in a thread."""
    if awaited is None:
        return await asyncio.to_thread(plain, *args, **options)
    return await awaited(*args, **options)


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that calls everything `here`; it needs no event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    raise RuntimeError("the work waits for something")


class Store:
    """A store that finds passages by meaning; a subclass has `search`, and what else it can do.

    Each method is written once, for callers that wait and for those that await: it reaches the
    store by ``await call(plain, awaited, *args)``.

    Attributes
    ----------
    name
        What errors call it.
    rescores, gets
        Whether it has `rescore` and `get`.
    replaces
        Whether adding a passage under an id that is there replaces it.
    """

    name = "the store"
    rescores = False
    gets = False
    replaces = True

    async def search(self, call: Call, query: Query, depth: int, where: Any) -> Hits:
        """Return the best `depth` passages that pass a filter."""
        raise NotImplementedError

    async def rescore(self, call: Call, query: Query, found: Sequence[Passage]) -> npt.ArrayLike:
        """Return the cosine of each passage, shape (n,)."""
        raise NotImplementedError

    async def add(self, call: Call, passages: Sequence[Passage]) -> Sequence[str]:
        """Write passages with ids, and return the ids that they have in the store."""
        raise NotImplementedError

    async def delete(self, call: Call, ids: Sequence[str]) -> None:
        """Delete passages that are there."""
        raise NotImplementedError

    async def get(self, call: Call, ids: Sequence[str]) -> Sequence[Passage]:
        """Return the passages that are there."""
        raise NotImplementedError


class StoreEngine(Engine):
    """A store that finds and scores passages by meaning, and BM25 over the same passages.

    A hit of the store is the BM25 side's passage of its id, or else one of equal text, which then
    counts: its id, metadata and source. Where several are equal, the one whose metadata agree most
    does; each stands for one hit. If only the text of an id differs, the store's is taken. With
    `id_key`, what is equal under that key of the metadata is the same, whatever ids and texts say.

    A store gives scores to the passages it finds and to no others: what only BM25 found has none,
    and counts with the lowest (`Pool`), unless the store has ``rescore``. Then it gets its cosine,
    and so do all the others where the store's scores are no cosines. BM25 scores are always exact.
    Equal scores keep the order of the store, followed by that of BM25.

    A filter that is neither a function nor a mapping of metadata keys, such as ``{"$or": [...]}``,
    is one of the store's own: BM25 cannot apply it, so that only what the store finds is returned.

    A store that has ``get`` is asked at each query, by one call, for what only BM25 found: what it
    does not have any more is left out, and a text that has changed there is taken. This begins once
    it has found a passage under the id of the BM25 side, or at once if `listed`. Once it has found
    one under another id, it ends: nobody can tell what was deleted.

    What was added to the store alone BM25 does not find, and scores 0: of a store that has ``get``
    the first such hit is warned of.

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
    listed
        Whether `sparse` was read out of the store, ids and all: what the store returns then
        counts, with its metadata of today.
    id_key
        Key of the metadata by which passages of both sides are the same, in place of id and text.

    Raises
    ------
    ValueError
        If `higher_is_better` is not a bool, or no passage has `id_key`.
    """

    embeds = True
    """The store embeds the texts."""

    def __init__(
        self,
        store: Store,
        sparse: PassageIndex,
        *,
        higher_is_better: bool = True,
        cosines: bool = False,
        listed: bool = False,
        id_key: str | None = None,
    ) -> None:
        self.store, self.sparse, self.id_key = store, sparse, id_key
        self.higher_is_better = check_bool(higher_is_better, "higher_is_better")
        self.cosines = cosines
        self._listed = listed
        self._same_ids: bool | None = False if id_key else listed or None
        """Whether the store has its passages under the ids of the BM25 side; None: not known."""
        self._warned = False
        self._writing = 0
        if id_key and sparse.count() and not any(id_key in p.metadata for p in sparse.passages):
            raise ValueError(f"no passage for BM25 has id_key={id_key!r} in its metadata")

    def pool(self, queries: Sequence[Query], depth: int, *, where: Any = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        Raises
        ------
        ValueError
            If `depth` is below 1, or the filter is malformed.
        """
        return [finished(self._pool(here, query, depth, where)) for query in queries]

    async def apool(self, queries: Sequence[Query], depth: int, *, where: Any = None) -> list[Pool]:
        """Await `pool`, with the queries side by side."""
        pools = (self._pool(awaiting, query, depth, where) for query in queries)
        return await asyncio.gather(*pools)

    async def _pool(self, call: Call, query: Query, depth: int, where: Any) -> Pool:
        store = self.store
        hits = await store.search(call, query, check_count(depth, "depth"), where)
        found, alone = await call(self._joined, None, query, hits, depth, where)
        if alone and store.gets and self._same_ids:
            there = {p.id: p for p in await store.get(call, [passage.id for passage in alone])}
            present = [self._present(each, there[each.id]) for each in alone if each.id in there]
            passes = predicate(where)
            alone = [each for each in present if passes(each.metadata)]
        passages = [*(passage for passage, _ in found), *alone]
        dense = np.array([*(score for _, score in found), *[np.nan] * len(alone)], np.float64)
        unscored = np.isnan(dense)
        if not self.cosines:  # then all of them, or scores of two kinds would be compared
            unscored[:] = bool(alone)
        if store.rescores and (rows := unscored.nonzero()[0].tolist()):
            dense[rows] = await store.rescore(call, query, [passages[row] for row in rows])
        return await call(self._scored, None, query, passages, dense)

    def _joined(
        self, query: Query, hits: Hits, depth: int, where: Any
    ) -> tuple[list[tuple[Passage, float]], list[Passage]]:
        """Return the hits of the store as BM25 has them, and what only BM25 found."""
        found = self._recognised(hits)
        if is_native(where):
            return found, []
        ids = {passage.id for passage, _ in found}
        best = self.sparse.best(query.text, depth, where=where)
        return found, [passage for passage, _ in best if passage.id not in ids]

    def _recognised(self, hits: Hits) -> list[tuple[Passage, float]]:
        """Return the hits of the store as BM25 has them, each once, higher scores better."""
        if hits and not self.sparse.count():
            warnings.warn(
                "BM25 has no passages and scores 0 everywhere: give it those of the store",
                stacklevel=2,
            )
        known = self._known([passage for passage, _ in hits])
        is_read = self.store.gets and self.sparse.count() and not self._writing
        if len(known) < len(hits) and is_read and not self._warned:
            self._warned = True
            alien = next(hit.id for at, (hit, _) in enumerate(hits) if at not in known)
            warnings.warn(
                f"BM25 does not have {alien!r} as {self.store.name} has it, and scores 0: build "
                "the retriever anew, or write through it",
                stacklevel=2,
            )
        if any(hits[at][0].id != same.id for at, same in known.items()):
            self._same_ids = False
        elif self._same_ids is None and any(hit.id in self.sparse for hit, _ in hits):
            self._same_ids = True
        found: dict[str, tuple[Passage, float]] = {}
        sign = 1.0 if self.higher_is_better else -1.0
        for at, (passage, score) in enumerate(hits):
            passage = self._present(known[at], passage) if at in known else passage
            value = np.nan if score is None else sign * float(score)
            found.setdefault(passage.id or f"\0{at}", (passage, value))
        return [*found.values()]

    def _present(self, known: Passage, stored: Passage) -> Passage:
        """Return which of two counts: the BM25 side's, or the store's, which may be newer."""
        if known.id == stored.id and (self._listed or known.text != stored.text):
            return stored
        return known if known.metadata else replace(known, metadata=stored.metadata)

    def _known(self, hits: Sequence[Passage]) -> dict[int, Passage]:
        """Return position -> the same passage of the BM25 side; see the class."""
        ids = [hit.id for hit in hits if self.id_key is None]
        by_id = {passage.id: passage for passage in self.sparse.get(ids)}
        known = {
            at: by_id[hit.id]
            for at, hit in enumerate(hits)
            if hit.id in by_id and by_id[hit.id].text == hit.text
        }
        pairs = [
            (-_agreement(hit, twin), at, twin)
            for at, hit in enumerate(hits)
            if hit.id not in by_id
            for twin in self._twins(hit)
            if twin.id not in by_id
        ]
        taken: set[str] = set()
        for _, at, twin in sorted(pairs, key=lambda pair: pair[:2]):
            if at not in known and twin.id not in taken:
                taken.add(twin.id)
                known[at] = twin
        return known

    def _twins(self, hit: Passage) -> list[Passage]:
        """Return the passages of the BM25 side that a hit of another id may be."""
        if self.id_key is None:
            return self.sparse.with_text(hit.text)
        key = hit.metadata.get(self.id_key)
        return [] if key is None else self.sparse.documents(self.id_key, [key])[0]

    def _scored(self, query: Query, passages: Sequence[Passage], dense: Scores) -> Pool:
        sparse = self.sparse.scores(query.text, passages)
        nearest = np.nanmax(dense, initial=-1.0) if self.cosines and len(sparse) else None
        return Pool(
            passages,
            dense,
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
        return self._recognised(
            finished(self.store.search(here, query, check_count(k, "k"), where))
        )

    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages to both sides, or replace those whose id is there; return their ids.

        If the store raises, both are as they were, as far as its own ``add`` is all or nothing.

        Raises
        ------
        ValueError
            If a passage is malformed, an id occurs twice, vectors are given, the store would have
            to replace a passage and cannot, or may have it under another id.
        """
        return finished(self._add(here, passages, vectors))

    async def aadd(
        self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None
    ) -> list[str]:
        """Await `add`, which is finished even if the caller is cancelled meanwhile."""
        return await shielded(self._add(awaiting, passages, vectors))

    async def _add(self, call: Call, passages: Sequence[Passage], vectors: object) -> list[str]:
        if vectors is not None:
            raise ValueError("the store embeds the passages itself: leave out their vectors")
        check_passages(passages)
        if not passages:  # some stores raise for none
            return []
        stored = await self._replaced(call, [passage.id for passage in passages])
        if stored and not self.store.replaces:
            there = [passage.id for passage in stored]
            raise ValueError(f"{self.store.name} cannot replace documents: delete {there} first")
        self._writing += 1
        try:
            ids = [*await self.store.add(call, passages)]
            await call(self._add_to_sparse, None, passages, ids, stored)
        finally:
            self._writing -= 1
        return ids

    def _add_to_sparse(
        self, passages: Sequence[Passage], ids: Sequence[str], replaced: Sequence[Passage]
    ) -> None:
        """Add to the BM25 side, under the ids of the store; it may have the replaced as others."""
        former = [passage.id for passage in (*passages, *self._known(replaced).values())]
        self.sparse.add([replace(p, id=id) for p, id in zip(passages, ids, strict=True)])
        self.sparse.delete([id for id in former if id not in ids])

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages from both sides; return the ids that either had.

        Raises
        ------
        ValueError
            If `ids` is a single string, or the store may have a passage under another id.
        """
        return finished(self._delete(here, ids))

    async def adelete(self, ids: Iterable[str]) -> list[str]:
        """Await `delete`, which is finished even if the caller is cancelled meanwhile."""
        return await shielded(self._delete(awaiting, ids))

    async def _delete(self, call: Call, ids: Iterable[str]) -> list[str]:
        ids = _listed(ids)
        stored = await self._replaced(call, ids)
        there = [passage.id for passage in stored]
        if there:
            await self.store.delete(call, there)
        same = await call(self._known, None, stored)
        deleted = self.sparse.delete([*ids, *(passage.id for passage in same.values())])
        return [id for id in dict.fromkeys(ids) if id in {*deleted, *there}]

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, those of the store if it can give them."""
        return finished(self._get(here, ids))

    async def aget(self, ids: Iterable[str]) -> list[Passage]:
        """Await `get`."""
        return await self._get(awaiting, ids)

    async def _get(self, call: Call, ids: Iterable[str]) -> list[Passage]:
        ids = _listed(ids)
        stored = await self._stored(call, ids)
        found = {passage.id: passage for passage in [*self.sparse.get(ids), *stored]}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def _replaced(self, call: Call, ids: Sequence[str]) -> Sequence[Passage]:
        """Return what is stored under ids; ValueError if the store may have it under others."""
        stored = await self._stored(call, ids)
        there = {passage.id for passage in stored}
        missing = [id for id in ids if id in self.sparse and id not in there]
        if missing and self._same_ids is False:
            raise ValueError(
                f"{self.store.name} has no {missing}, which BM25 has: give the ids of the store, "
                "or build the retriever anew with documents that have these"
            )
        return stored

    async def _stored(self, call: Call, ids: Sequence[str]) -> Sequence[Passage]:
        """Return the passages of the store; if it cannot give them, those of the BM25 side."""
        if ids and self.store.gets:  # some stores raise for none
            return await self.store.get(call, ids)
        return self.sparse.get(ids)

    def documents(
        self, key: str, names: Sequence[Any], *, where: Any = None
    ) -> tuple[list[Passage], None]:
        """Return the passages of the BM25 side whose metadata have one of `names` under `key`.

        The store's vectors are out of reach, so continuity is unknown.

        Raises
        ------
        ValueError
            If the filter is one of the store's own.
        """
        if is_native(where):
            raise ValueError(
                "expand= reads neighbours on the BM25 side, which cannot apply the filter "
                f"{where!r:.80}: give a mapping or a function of the metadata"
            )
        return self.sparse.documents(key, names, where=where)[0], None

    def count(self) -> int:
        """Return the number of passages of the BM25 side."""
        return self.sparse.count()

    def close(self) -> None:
        """Do nothing: the store is the caller's."""


def is_native(where: Any) -> bool:
    """Whether a filter is of the store's own kind: no function, nor a mapping of metadata keys."""
    if isinstance(where, Mapping):
        return any(
            str(key).startswith("$") or (isinstance(held, Mapping) and not {*held} <= {*BOUNDS})
            for key, held in where.items()
        )
    return where is not None and not callable(where)


def known_of(table: Mapping[str, T], store: object) -> T | None:
    """Return the entry of a store's class, or of the nearest one that it inherits."""
    names = (f"{cls.__module__}.{cls.__qualname__}" for cls in type(store).__mro__)
    return next((table[name] for name in names if name in table), None)


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


async def gathered(
    work: Callable[[Item], Awaitable[T]], items: Iterable[Item], limit: int | None
) -> list[T]:
    """Await work for each item at once, at most `limit` at a time if that is set.

    The first error is raised once the other calls, which nobody waits for, have been cancelled.
    """
    free = asyncio.Semaphore(limit or sys.maxsize)

    async def one(item: Item) -> T:
        async with free:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


_unfinished: set[asyncio.Task[Any]] = set()


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Await work that goes on even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)  # the event loop holds it only weakly
    task.add_done_callback(_unfinished.discard)
    return await asyncio.shield(task)
