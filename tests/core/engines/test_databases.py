"""One contract for every engine that holds both legs: it answers as the index in memory does."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from shared_core import CAUS, HybridIndex, NeighbourSpans, Passage
from shared_core.corpora.docstrings import own_docstring
from shared_core.corpora.torch_api import torch_api_passages, torch_queries
from shared_core.engines import Engine, connect
from shared_core.errors import EngineError
from shared_core.types import Pool, Query

Floats = npt.NDArray[np.float32]
Make = Callable[..., Engine]

NUMBER, RUN = count(), f"run{secrets.token_hex(4)}"
DIM = 64


def vectors_of(texts: Sequence[str]) -> Floats:
    """Embed texts by hashing their words: near where they share some."""
    found = np.zeros((len(texts), DIM), np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            found[row] += np.random.default_rng(sum(word.encode())).standard_normal(DIM)
    found[~found.any(axis=1)] = 1
    return found


FISH = [
    Passage(f"p{n}", text, {"n": n})
    for n, text in enumerate(
        ["red fish", "blue fish", "one fish", "two boats", "red boats and red fish"]
    )
]
RED_FISH = Query("red fish", vectors_of(["red fish"])[0])


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    """2,000 real passages, with metadata to filter by."""
    texts = {each.id: each.text for each in torch_api_passages()}
    texts |= {f"numpy.{name}": own_docstring(getattr(np, name)) for name in np.__all__}
    found = [(id, text) for id, text in texts.items() if text][:2000]
    return [
        Passage(id, text, {"module": id.rsplit(".", 1)[0], "n": n, "odd": n % 2 == 1})
        for n, (id, text) in enumerate(found)
    ]


@pytest.fixture(scope="module")
def queries(passages: list[Passage]) -> list[Query]:
    """Real questions, real sentences, and what else people type."""
    texts = [query.query for query in torch_queries()]
    texts += [passage.text[:120] for passage in passages[::5]][:140]
    texts += ["tensor " * 5 + "sum sum", "zyzzyva", "", "größe 東京 naïve", "the of", "?"]
    return [*map(Query, texts, vectors_of(texts))]


@pytest.fixture
def lancedb(tmp_path: Path) -> str:
    pytest.importorskip("lancedb")
    return f"lancedb://{tmp_path}"


@pytest.fixture(params=["postgres", "qdrant", "lancedb", "milvus"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, request: pytest.FixtureRequest) -> Iterator[Make]:
    """Return what makes an engine over a collection: of its own, or a named one."""
    made: list[Engine] = []
    given = request.getfixturevalue(kind)
    address, fixed = given if isinstance(given, tuple) else (given, {})

    def engine(collection: str = "", **options: Any) -> Engine:
        name = f"{RUN}_{collection or next(NUMBER)}"
        if kind == "milvus":
            name = re.sub(r"\W", "_", name, flags=re.ASCII)  # no others are allowed there
        made.append(connect(address, name, **fixed, **options))
        return made[-1]

    yield engine
    for each in made:
        each.close()


def catch(n: int) -> list[Passage]:
    """Return the n-th batch of a writer."""
    return [Passage(f"w{n}.{at}", f"fish {n} {at}") for at in range(20)]


def filled(engine: Any, passages: Sequence[Passage]) -> Any:
    engine.add(passages, vectors_of([passage.text for passage in passages]))
    return engine


def both_filled(engine: Any, passages: Sequence[Passage]) -> tuple[Any, HybridIndex]:
    """Return an engine, and an index in memory that compares lengths with the same mean."""
    index = HybridIndex(metric=engine.metric, mean_length=engine.bm25.mean_length)
    return filled(engine, passages), filled(index, passages)


def ids(pool: Pool) -> list[str]:
    return [passage.id for passage in pool.passages]


def scores(pool: Pool) -> dict[str, tuple[float, float]]:
    both = zip(pool.dense.tolist(), pool.sparse.tolist(), strict=True)
    return {passage.id: each for passage, each in zip(pool.passages, both, strict=True)}


def assert_same(given: Sequence[Pool], expected: Sequence[Pool], depth: int) -> None:
    """Members, their order and both scores; what ties with a leg's last may be cut differently."""
    for pool, wanted in zip(given, expected, strict=True):
        assert (pool.query, pool.complete) == (wanted.query, wanted.complete)
        assert (pool.nearest or 0) == pytest.approx(wanted.nearest or 0, rel=1e-5, abs=1e-6)
        mine, theirs = scores(pool), scores(wanted)
        order = [id for id in mine if id in theirs]
        assert order == [id for id in theirs if id in mine]
        for id in order:
            assert mine[id] == pytest.approx(theirs[id], rel=1e-5, abs=1e-6)
        legs = np.reshape([*theirs.values()], (-1, 2))
        last = np.sort(legs, axis=0)[::-1][:depth].min(axis=0, initial=np.inf)
        for id in mine.keys() ^ theirs.keys():
            assert np.isclose((mine | theirs)[id], last, rtol=1e-5, atol=1e-6).any()


def killed_amid_writes(engine: Any, kill: Callable[[], object]) -> list[Passage]:
    """Kill a server while a thread writes; return the passages whose writing was acknowledged."""
    written: list[Passage] = []

    def write() -> None:
        for n in count():
            filled(engine, catch(n))
            written.extend(catch(n))

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        while len(written) < 100:
            time.sleep(0.01)
        kill()
        with pytest.raises(EngineError, match="is the server up"):
            writer.result(timeout=60)
    return written


def test_pools_are_those_of_the_index_in_memory(
    make: Make, passages: list[Passage], queries: list[Query]
) -> None:
    """One by one, and many at once; filtered; after deletions and replacements."""
    engine, index = both_filled(make(), passages)
    assert_same(engine.pool(queries, 50), index.pool(queries, 50), 50)
    for where in (
        {"odd": True},
        {"module": ["torch", "torch.nn"], "odd": False},
        {"n": 7},
        {"x": 1},
        {"n": []},
    ):
        few = queries[:20]
        assert_same(engine.pool(few, 10, where=where), index.pool(few, 10, where=where), 10)
    gone = [passage.id for passage in passages[::5]]
    again = [replace(passage, text=passage.text + " anew anew") for passage in passages[1::50]]
    for each in (engine, index):
        assert each.delete([*gone, "unknown"]) == gone
        filled(each, again)
    assert engine.count() == index.count() < len(passages)
    assert_same(engine.pool(queries, 50), index.pool(queries, 50), 50)


def test_a_query_has_the_same_answer(make: Make, passages: list[Passage]) -> None:
    """Fused, placed and expanded, whatever names the document of a chunk."""
    names = [0, 1, 2.0, 2.5, -4.0, *"56789"]
    chunks = [
        Passage(f"{n}", passage.text, {"doc_id": names[n // 6], "chunk_id": n % 6})
        for n, passage in enumerate(passages[:60])
    ]
    engine, index = both_filled(make(), chunks)
    asked = [Query("sum of all elements", vectors_of(["sum of all elements"])[0])]
    for caus in (CAUS(k=5, psi="always"), CAUS(k=9, expand=NeighbourSpans(token_budget=None))):
        (mine,), (theirs,) = caus.search(engine, asked), caus.search(index, asked)
        assert [each.text for each in mine.passages] == [each.text for each in theirs.passages]
        assert mine.scores == pytest.approx(theirs.scores, abs=1e-5)


def test_a_leg_alone(make: Make, passages: list[Passage], queries: list[Query]) -> None:
    """As the index gives it."""
    engine, index = both_filled(make(), passages[:300])
    for leg in ("dense", "sparse"):
        for query in queries[:10]:
            mine, theirs = (each.search_leg(leg, query, 7) for each in (engine, index))
            assert [passage.id for passage, _ in mine] == [passage.id for passage, _ in theirs]


def test_a_search_where_no_collection_is_says_so(make: Make, queries: list[Query]) -> None:
    """As by a mistyped name, which would look like questions that nothing answers."""
    engine = make()
    with pytest.warns(UserWarning, match=f"{engine.collection}.* is not there"):
        assert [*map(ids, engine.pool(queries[:2], 5))] == [[], []]


def test_what_was_added_is_there_for_others_and_later(
    make: Make, passages: list[Passage], queries: list[Query]
) -> None:
    """Another client sees it at once, and a new one knows the collection's options."""
    first, other = make("shared"), make("shared")
    assert (first.count(), first.pool(queries[:1], 5)[0].passages) == (0, ())
    filled(first, passages[:100])
    late = make("shared")
    assert late.count() == other.count() == 100
    assert_same(late.pool(queries[:5], 10), first.pool(queries[:5], 10), 10)
    assert_same(other.pool(queries[:5], 10), first.pool(queries[:5], 10), 10)
    assert [each.text for each in late.get([passages[3].id, "x"])] == [passages[3].text]
    with pytest.raises(ValueError, match=r"made with b=0\.75, not 0\.5"):
        make("shared", b=0.5)
    with pytest.raises(ValueError, match="got the string 'x'"):
        late.delete("x")
    with pytest.raises(ValueError, match="made with tokenizer="):
        make("shared", tokenizer=str.split)


def test_passages_are_found_by_their_metadata(make: Make, passages: list[Passage]) -> None:
    """As by the index in memory."""
    engine, index = make(), filled(HybridIndex(), passages[:300])

    def found(engine: Engine, *values: str) -> list[str]:
        return sorted(passage.id for passage in engine.documents("module", values)[0])

    assert found(engine, "torch.nn") == []
    filled(engine, passages[:300])
    for values in (["torch.nn"], ["torch", "torch.nn", "x"], []):
        assert found(engine, *values) == found(index, *values)


RANGES: list[dict[str, Any]] = [
    {"year": {"$gt": 3}},
    {"year": {"$gte": 3, "$lt": 4.5}},
    {"year": {"$lte": 3}, "lang": ["en", "de"]},
    {"two words": {"$gte": 1}},
    {"nowhere": {"$gt": 0}},
]


def test_numbers_are_found_within_bounds(make: Make) -> None:
    """Numbers alone: no text that looks like one."""
    values: list[Any] = [1, 2.5, 3, 3.0, 4.5, 7, "4", None, {"x": 4}, -2]
    engine, index = both_filled(
        make(),
        [
            Passage(f"n{at}", "a word", {"year": value, "lang": "en", "two words": value})
            for at, value in enumerate(values)
        ],
    )
    for where in RANGES:
        ours, theirs = (each.pool([RED_FISH], 20, where=where)[0] for each in (engine, index))
        assert ids(ours) == ids(theirs), where


def test_a_filter_holds_what_json_can_hold(make: Make) -> None:
    """Numbers of numpy's among it; of a date no database can be asked."""
    engine = filled(make(), FISH)
    (pool,) = engine.pool([RED_FISH], 9, where={"n": [np.int64(3), np.int32(4)]})
    assert ids(pool) == ["p3", "p4"]
    with pytest.raises(ValueError, match=r"filter 'n' is .*date.*, which is not JSON"):
        engine.pool([RED_FISH], 9, where={"n": date(2020, 1, 1)})


def own_condition(kind: str) -> object:
    """Return a condition in a database's own language: n is at least 3."""
    if kind == "postgres":
        sql = pytest.importorskip("psycopg").sql
        return sql.SQL("(metadata ->> 'n')::int % 5 >= 3")
    if kind == "qdrant":
        models = pytest.importorskip("qdrant_client").models
        above = models.FieldCondition(key="metadata.n", range=models.Range(gte=3))
        return models.Filter(must=[above])
    return {"lancedb": "json_get_int(metadata, 'n') >= 3", "milvus": "metadata['n'] >= 3"}[kind]


def test_a_condition_of_the_databases_own(make: Make, kind: str) -> None:
    """It is named where a function or another operator is refused, which no database takes."""
    engine = filled(make(), FISH)
    (pool,) = engine.pool([RED_FISH], 9, where=own_condition(kind))
    assert ids(pool) == ["p3", "p4"]
    own = {"postgres": "psycopg.sql", "qdrant": "client.models.Filter", "lancedb": "LanceDB's SQL"}
    for where in (lambda metadata: True, {"$or": []}, {"n": {"$ne": 1}}):
        with pytest.raises(ValueError, match=rf"(or|give) an? .*{own.get(kind, 'sion of Milvus')}"):
            engine.pool([RED_FISH], 9, where=where)


def test_a_collection_keeps_and_tells_its_options(make: Make) -> None:
    """They are those of whoever opens it without any."""
    engine: Any = make("own", metric="inner_product")
    assert engine.describe() is None
    engine, index = both_filled(engine, FISH)
    again: Any = make("own")
    expected = {"passages": 5, "dim": DIM, "metric": "inner_product", "k1": 1.2, "b": 0.75}
    assert expected.items() <= again.describe().items()
    assert_same(again.pool([RED_FISH], 9), index.pool([RED_FISH], 9), 9)


def test_sources_are_kept_by_the_callers_own_code(make: Make) -> None:
    """As `HybridIndex.save` keeps them; also where a client that cannot read them reweighs."""
    given = [Passage("a", "x", source={1, 2})]
    filled(make("sources", encode_source=sorted), given)
    plain: Any = make("sources")
    getattr(plain, "reweigh", plain.count)()
    assert make("sources", decode_source=set).get(["a"]) == given
    assert plain.get(["a"])[0].source is None


@pytest.fixture
def silent() -> Iterator[int]:
    """Return the port of a server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: [listener.accept() for _ in range(9)], daemon=True).start()
        yield listener.getsockname()[1]


@pytest.mark.parametrize("scheme", ["postgresql", "qdrant", "milvus"])
def test_a_server_that_does_not_answer_is_given_up_in_time(scheme: str, silent: int) -> None:
    """And one that is not there; without a word of the password or key."""
    pytest.importorskip(
        {"postgresql": "psycopg", "qdrant": "qdrant_client"}.get(scheme, "pymilvus")
    )
    secret = {} if scheme == "postgresql" else {"api_key": "me:secret", "tls": False}
    user = "" if secret else "me:secret@"
    for port in (silent, 1):
        started = time.monotonic()
        with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{port}.* does not answer") as caught:
            connect(f"{scheme}://{user}127.0.0.1:{port}", timeout=1, **secret)
        assert "secret" not in str(caught.value)
        assert time.monotonic() - started < 20


def test_all_are_added_or_none(make: Make, passages: list[Passage]) -> None:
    """Whatever is wrong with one of them."""
    engine = filled(make(), passages[:10])
    both = vectors_of(["a", "b"])
    wrong = replace(passages[21], metadata={"n": 1, "x": date(2020, 1, 1)})
    with pytest.raises(ValueError, match=rf"'x' of passage '{wrong.id}' is .* not JSON"):
        engine.add([passages[20], wrong], both)
    for more, vectors, told in (
        ([passages[20], passages[20]], both, "twice"),
        ([passages[20]], np.ones((1, DIM + 1)), f"dimension {DIM}"),
        ([passages[20]], np.full((1, DIM), np.nan), "NaN"),
    ):
        with pytest.raises(ValueError, match=told):
            engine.add(more, vectors)
        assert (engine.count(), engine.get([passages[20].id])) == (10, [])


def test_texts_and_metadata_come_back_as_they_were(make: Make) -> None:
    """Whatever a quote or a brace may mean to the database."""
    metadata = {"it's": '"; DROP TABLE x; --', "list": [1, {"a": None}], "%s": "\\", "größe": 1.5}
    given = [Passage("o'clock; --", "it's {here} %s \\ \t\n 東京", metadata), Passage("b", "")]
    engine = filled(make("Weird; 100% Näme"), given)
    assert engine.get(["o'clock; --", "b"]) == given
    (pool,) = engine.pool([Query("here", vectors_of(["here"])[0])], 5, where={"%s": "\\"})
    assert pool.passages == given[:1]
    assert engine.delete(["o'clock; --"]) == ["o'clock; --"]


def test_many_at_once(make: Make, passages: list[Passage], queries: list[Query]) -> None:
    """From threads and awaited, while two others write: every state is a whole one."""
    engine = filled(make(), passages[:200])
    expected = engine.pool(queries[:10], 20)
    stop = threading.Event()

    def write(start: int) -> None:
        batch = passages[start : start + 40]
        while not stop.is_set():
            filled(engine, batch)
            engine.delete([passage.id for passage in batch])

    with ThreadPoolExecutor(18) as pool:
        writers = [pool.submit(write, start) for start in (200, 220)]
        found = [*pool.map(lambda _: engine.pool(queries[:10], 20), range(16))]
        stop.set()
        for writer in writers:
            writer.result()
    assert all(len(pools) == 10 for pools in found)
    assert engine.count() == 200
    assert_same(engine.pool(queries[:10], 20), expected, 20)

    async def ask() -> list[list[Pool]]:
        return await asyncio.gather(*(engine.apool(queries[:1], 20) for _ in range(100)))

    for pools in asyncio.run(ask()):
        assert_same(pools, expected[:1], 20)
