"""A store of others as an engine."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, Passage
from shared_core.engines.store import Call, Hits, Store, StoreEngine
from shared_core.index.engine import Engine
from shared_core.index.metadata import predicate
from shared_core.index.passages import PassageIndex
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.types import Query
from shared_core.vectors import cosine_similarity

TEXTS = ["relu layer", "pool layer", "gru cell", "lstm cell", "conv layer", "relu relu"]
PASSAGES = [
    Passage(f"p{n}", text, {"n": n, "doc_id": "d", "chunk_id": n}) for n, text in enumerate(TEXTS)
]
QUERY = Query("the relu layer")


def vector(text: str) -> list[float]:
    """Letters, counted."""
    return [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


class Shop(Store):
    """A store: passages by id, compared by cosine."""

    gets = True

    def __init__(self, passages: Sequence[Passage] = PASSAGES, *, rescores: bool = False) -> None:
        self.held = {passage.id: passage for passage in passages}
        self.filters: list[Any] = []
        self.rescores = rescores

    async def search(self, call: Call, query: Query, depth: int, where: Any) -> Hits:
        return await call(self.nearest, None, query, depth, where)

    def nearest(self, query: Query, depth: int, where: Any = None) -> Hits:
        self.filters.append(where)
        passes = predicate(where if isinstance(where, dict) or callable(where) else None)
        there = [each for each in self.held.values() if passes(each.metadata)]
        scored = zip(there, self.cosines(query, there), strict=True)
        return sorted(scored, key=lambda hit: -hit[1])[:depth]

    async def rescore(self, call: Call, query: Query, found: Sequence[Passage]) -> list[float]:
        return self.cosines(query, found)

    def cosines(self, query: Query, passages: Sequence[Passage]) -> list[float]:
        vectors = [vector(passage.text) for passage in passages]
        asked = [vector(query.text)] * len(passages)
        return cosine_similarity(asked, vectors).tolist() if vectors else []

    async def add(self, call: Call, passages: Sequence[Passage]) -> list[str]:
        self.held |= {passage.id: passage for passage in passages}
        return [passage.id for passage in passages]

    async def delete(self, call: Call, ids: Sequence[str]) -> None:
        for id in ids:
            del self.held[id]

    async def get(self, call: Call, ids: Sequence[str]) -> list[Passage]:
        return [self.held[id] for id in ids if id in self.held]


class Fixed(Store):
    """A store that finds what it is given, and can do nothing else but give cosines."""

    def __init__(self, *hits: tuple[Passage, float | None], shop: Shop | None = None) -> None:
        self.hits, self.shop, self.rescores = hits, shop, shop is not None

    async def search(self, call: Call, query: Query, depth: int, where: Any) -> Hits:
        return self.hits

    async def rescore(self, call: Call, query: Query, found: Sequence[Passage]) -> list[float]:
        assert self.shop is not None
        return self.shop.cosines(query, found)


def bm25_of(passages: Sequence[Passage] = PASSAGES) -> PassageIndex:
    index = PassageIndex()
    index.add(passages)
    return index


def engine_of(shop: Shop, sparse: Sequence[Passage] = PASSAGES, **options: Any) -> StoreEngine:
    return StoreEngine(shop, bm25_of(sparse), **options)


def test_what_only_bm25_found_has_no_dense_score_and_counts_with_the_lowest() -> None:
    engine = StoreEngine(Fixed((PASSAGES[2], 0.7)), bm25_of())
    (pool,) = engine.pool([Query("relu layer")], 1)
    assert pool.passages == [PASSAGES[2], PASSAGES[0]]
    np.testing.assert_equal(pool.dense, [0.7, np.nan])

    (found,) = CAUS(k=2, fetch_k=2, alpha=0.0).search(engine, [Query("relu layer")])

    assert [passage.id for passage in found.passages] == ["p0", "p5"]
    assert [why["dense"] for why in found.explain()] == [0.7, 0.7]
    assert [why["dense_exact"] for why in found.explain()] == [False, False]


def test_rescored_it_has_its_cosine_and_all_have_where_the_others_are_none() -> None:
    shop = Shop(PASSAGES[:2])
    query = Query("relu cell layer")
    hits = shop.nearest(query, 6)
    halved = [(passage, score / 2) for passage, score in hits if score is not None]
    for given, cosines in ((hits, True), (halved, False)):
        store = Fixed(*given, shop=shop)
        (pool,) = StoreEngine(store, bm25_of(), cosines=cosines).pool([query], 6)
        assert len(pool.passages) > 2
        assert pool.dense == pytest.approx(shop.cosines(query, pool.passages))


def test_distances_are_negated_and_none_is_no_score() -> None:
    store = Fixed((PASSAGES[2], 1.0), (PASSAGES[3], 4.0), (PASSAGES[1], None))
    (pool,) = StoreEngine(store, bm25_of(), higher_is_better=False).pool([Query("")], 3)
    np.testing.assert_equal(pool.dense, [-1.0, -4.0, np.nan])
    assert pool.nearest is None


def test_passages_that_the_store_has_under_other_ids_come_once() -> None:
    """As in Qdrant, which wants UUIDs, and with one more key in the store's metadata."""
    renamed = [
        replace(p, id=f"uuid-{n}", metadata={**p.metadata, "n": float(n), "_collection": "c"})
        for n, p in enumerate(PASSAGES)
    ]
    (expected,) = CAUS(k=6).search(engine_of(Shop()), [QUERY])
    (found,) = CAUS(k=6).search(engine_of(Shop(renamed)), [QUERY])
    assert found.passages == expected.passages
    assert found.explain() == expected.explain()


def test_passages_of_equal_text_are_told_apart_by_their_metadata() -> None:
    twins = [Passage(id, "relu", {"n": n, "of": "x"}) for n, id in enumerate("abc")]
    stored = [replace(twin, id=f"uuid-{twin.id}") for twin in reversed(twins)]
    (pool,) = engine_of(Shop(stored), twins).pool([Query("relu")], 3)
    assert pool.passages == twins[::-1]
    bare = [Passage("a", "relu"), Passage("b", "relu")]  # or by ids that are the store's own
    for known in (bare, bare[:1], bare[1:]):
        (pool,) = engine_of(Shop(bare), known).pool([Query("relu")], 3)
        assert sorted(passage.id for passage in pool.passages) == ["a", "b"]


def test_passages_may_be_the_same_by_a_key_of_the_users_own() -> None:
    """Whatever ids and texts say; what has no such key is nobody's."""
    renamed = [
        replace(p, id=f"p{5 - n}", text=f"{p.text}.", metadata={"n": float(n)})
        for n, p in enumerate(PASSAGES)
    ]
    (expected,) = CAUS(k=6).search(engine_of(Shop()), [QUERY])
    (found,) = CAUS(k=6).search(engine_of(Shop(renamed), id_key="n"), [QUERY])
    assert found.passages == expected.passages
    assert found.explain() == expected.explain()
    bare = Passage("p0", "relu layer")
    (pool,) = engine_of(Shop([bare]), id_key="n").pool([Query("relu")], 1)
    assert pool.passages == [bare, PASSAGES[5]]


def test_the_text_of_the_store_counts_where_that_of_an_id_differs() -> None:
    newer = replace(PASSAGES[0], text="relu relu relu")
    (pool,) = engine_of(Shop([newer])).pool([Query("relu")], 1)
    assert pool.passages[0] == newer
    assert [passage.id for passage in pool.passages].count("p0") == 1


@pytest.mark.parametrize("where", [{"n": [1, 2, 4]}, lambda metadata: metadata["n"] in (1, 2, 4)])
def test_a_filter_holds_in_both_legs_and_for_neighbours(where: Any) -> None:
    engine = engine_of(Shop())
    caus = CAUS(k=1, expand=NeighbourSpans(window=2, token_budget=None, min_continuity=None))
    (pool,) = engine.pool([QUERY], 6, where=where)
    assert sorted(passage.id for passage in pool.passages) == ["p1", "p2", "p4"]
    (found,) = caus.search(engine, [Query("pool")], where=where)
    assert [span.text for span in found.spans] == ["pool layer\ngru cell"]  # type: ignore[attr-defined]


def test_a_filter_of_the_store_itself_leaves_what_the_store_finds() -> None:
    """BM25 cannot apply it; what BM25 alone would find might not pass."""
    shop, native = Shop(PASSAGES[2:4]), object()
    (pool,) = engine_of(shop).pool([QUERY], 6, where=native)
    assert shop.filters == [native]
    assert {passage.id for passage in pool.passages} == {"p2", "p3"}


def test_what_was_deleted_in_the_store_itself_is_left_out() -> None:
    shop = Shop(PASSAGES[1:])
    engine, query = engine_of(shop), Query("relu layer")
    assert PASSAGES[0] in [passage for passage, _ in engine.search_leg("sparse", query, 4)]
    (found,) = engine.pool([query], 4)
    assert PASSAGES[0] not in found.passages
    assert len(found.passages) == len(found.dense) == len(found.sparse)
    shop.held.clear()
    (emptied,) = engine.pool([QUERY], 4)
    assert (emptied.passages, len(emptied.dense)) == ([], 0)


@pytest.mark.parametrize("shared", [PASSAGES[:0], PASSAGES[1:2]], ids=["none", "one"])
def test_under_other_ids_nobody_can_tell_what_was_deleted(shared: list[Passage]) -> None:
    """And the store is not asked for ids that it may refuse."""

    class Strict(Shop):
        async def get(self, call: Call, ids: Sequence[str]) -> list[Passage]:
            raise ValueError("not a UUID")

    renamed = [replace(passage, id=f"uuid-{passage.id}") for passage in PASSAGES[1:]]
    strict = Strict([*shared, *renamed[len(shared) :]])
    (pool,) = engine_of(strict).pool([Query("relu layer")], 3)
    assert PASSAGES[0] in pool.passages


def test_a_text_that_changed_in_the_store_counts_where_bm25_alone_finds_it() -> None:
    newer = replace(PASSAGES[5], text="a gru")
    shop, query = Shop([*PASSAGES[:5], newer]), Query("relu layer")
    (pool,) = engine_of(shop).pool([query], 2)
    assert "p5" not in [passage.id for passage, _ in shop.nearest(query, 2)]
    assert pool.passages[-1] == newer
    assert pool.sparse[-1] == 0 < max(pool.sparse)


def test_of_a_store_that_bm25_was_read_from_the_metadata_of_today_count() -> None:
    """Also for a filter: what passes no longer is left out, whichever leg finds it."""
    (pool,) = engine_of(Shop([]), listed=True).pool([QUERY], 4)
    assert pool.passages == [], "of what is gone nothing is found"
    shop = Shop()
    engine = engine_of(shop, listed=True)
    shop.held["p5"] = replace(PASSAGES[5], metadata={"n": 500})
    for where, wanted in (({"n": 5}, []), ({"n": 500}, [500]), (None, [500])):
        for depth in (1, 6):
            (pool,) = engine.pool([Query("relu relu")], depth, where=where)
            assert [p.metadata["n"] for p in pool.passages if p.id == "p5"] == wanted


def test_what_bm25_does_not_know_is_told_once() -> None:
    engine = engine_of(Shop([*PASSAGES, Passage("new", "relu layer")]))
    with pytest.warns(UserWarning, match=r"BM25 does not have 'new' .* build the retriever anew"):
        engine.pool([QUERY], 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.pool([QUERY], 9)


def test_no_passages_for_bm25_over_a_filled_store_are_told() -> None:
    with pytest.warns(UserWarning, match="BM25 has no passages"):
        engine_of(Shop(), []).pool([QUERY], 2)


def test_adding_replaces_in_both_legs_also_under_another_id() -> None:
    shop = Shop([replace(PASSAGES[0], id="uuid-0"), *PASSAGES[1:]])
    engine = engine_of(shop)
    newer = Passage("uuid-0", "swish")
    assert engine.add([newer]) == ["uuid-0"]
    assert engine.get(["uuid-0", "p0"]) == [newer]
    assert engine.count() == len(shop.held) == 6
    assert engine.delete(["uuid-0", "none"]) == ["uuid-0"]
    assert engine.count() == len(shop.held) == 5


def test_a_result_is_not_changed_by_an_id_that_the_store_does_not_have() -> None:
    """It would stay in the store; what the store itself deleted can be deleted."""
    renamed = Shop([replace(passage, id=f"uuid-{passage.id}") for passage in PASSAGES])
    engine = engine_of(renamed)
    (before,) = engine.pool([QUERY], 6)
    assert "p0" in [passage.id for passage in before.passages]
    for change in (engine.delete, lambda ids: engine.add([Passage(id, "swish") for id in ids])):
        with pytest.raises(ValueError, match=r"has no \['p0'\], which BM25 has: give the ids of"):
            change(["p0"])
    assert engine.pool([QUERY], 6)[0].passages == before.passages
    assert engine.delete(["uuid-p0"]) == ["uuid-p0"]
    assert engine.count() == len(renamed.held) == 5

    engine = engine_of(Shop(PASSAGES[1:]))
    engine.pool([QUERY], 6)
    assert engine.delete(["p0"]) == ["p0"]


def test_a_store_that_raises_leaves_bm25_as_it_was() -> None:
    class Gone(Shop):
        async def add(self, call: Call, passages: Sequence[Passage]) -> list[str]:
            raise ConnectionError("gone")

    engine = engine_of(Gone())
    before = engine.search_leg("sparse", Query("relu swish"), 9)
    added = [replace(PASSAGES[5], text="swish"), Passage("new", "swish")]
    with pytest.raises(ConnectionError):
        engine.add(added)
    assert engine.search_leg("sparse", Query("relu swish"), 9) == before


def test_a_passage_that_bm25_refuses_does_not_reach_the_store() -> None:
    shop = Shop()
    for bad in ([Passage("", "text")], [Passage("a", "x"), Passage("a", "y")]):
        with pytest.raises(ValueError, match="id"):
            engine_of(shop).add(bad)
    assert len(shop.held) == 6


async def test_a_change_that_is_cancelled_is_made_in_both_legs() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Shop):
        async def add(self, call: Call, passages: Sequence[Passage]) -> list[str]:
            started.set()
            await go_on.wait()
            return await super().add(call, passages)

    shop = Slow()
    engine = engine_of(shop)
    task = asyncio.ensure_future(engine.aadd([Passage("new", "swish")]))
    await started.wait()
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    while not engine.search_leg("sparse", Query("swish"), 1):
        await asyncio.sleep(0)
    assert "new" in shop.held


def test_an_engine_without_all_methods_cannot_be_made() -> None:
    class Half(Engine):
        embeds = True

        def count(self) -> int:
            return 0

    with pytest.raises(TypeError, match=r"'?documents'?, '?get"):
        Half()  # type: ignore[abstract]
