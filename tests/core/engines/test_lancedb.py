"""LanceDB: what no other engine has."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.errors import EngineError
from shared_core.types import Query

lancedb = pytest.importorskip("lancedb")

from shared_core.engines import lancedb as module  # noqa: E402
from shared_core.engines.lancedb import LanceEngine  # noqa: E402

from .test_databases import FISH, RED_FISH, assert_same, catch, filled, ids, vectors_of  # noqa: E402


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"lancedb://{tmp_path}/folder"


def test_few_changes_among_many_count_too(address: str) -> None:
    """LanceDB itself counts deleted passages until a tenth of a file is gone."""
    texts = [f"word{n % 13} and word{n % 7} text{n}" for n in range(400)]
    given = [Passage(f"g{n}", text) for n, text in enumerate(texts)]
    asked = [*map(Query, texts[:20], vectors_of(texts[:20]))]
    with filled(LanceEngine(address), given) as engine:
        index = filled(HybridIndex(), given)
        for each in (engine, index):
            each.delete(["g7"])
        assert_same(engine.pool(asked, 500), index.pool(asked, 500), 500)
        again = [Passage("g3", "word1 anew"), *(Passage(f"h{n}", "word2") for n in range(9))]
        for number, passage in enumerate(again * 3):  # many small files, which are merged
            filled(engine, [passage])
            filled(index, [passage])
            if number % 10 == 5:
                assert_same(engine.pool(asked, 500), index.pool(asked, 500), 500)
        assert_same(engine.pool(asked, 500), index.pool(asked, 500), 500)


def test_a_query_reads_twice(address: str, grown: list[list[Passage]]) -> None:
    """The table's version, then what both legs find, as much as before if the collection grows.

    What scores the rest needs nothing but the index of words, which is in memory by then.
    """
    read: list[tuple[int, bool]] = []
    best = module._best

    def counting(search: Any, *arguments: Any) -> Any:
        rows = best(search, *arguments)
        read.append((rows.num_rows, "iops=" in re.sub("iops=0", "", search.analyze_plan())))
        return rows

    with LanceEngine(address) as engine, patch.object(module, "_best", counting):
        for given in grown:
            filled(engine, given).pool([RED_FISH], 9)
            read.clear()
            with patch.object(engine, "_table", wraps=engine._table) as opened:
                engine.pool([RED_FISH], 9)
            assert opened.call_count == 1
            *found, (rest, reads) = read
            assert (found, rest <= 9, reads) == ([(9, True)] * 2, True, False)


def test_a_folder_that_goes_away_and_comes_back(address: str) -> None:
    """What is told names the address and the way out; then everything works again."""
    folder = Path(address.removeprefix("lancedb://"))
    with filled(LanceEngine(address), FISH) as engine:
        folder.rename(folder.with_name("elsewhere"))
        for call in (
            lambda: engine.pool([RED_FISH], 9),
            lambda: filled(engine, [Passage("new", "red")]),
            lambda: engine.get(["a"]),
            engine.count,
            lambda: engine.delete(["a"]),
        ):
            with pytest.raises(
                EngineError, match=f"{address} does not answer .*: is it there, and"
            ):
                call()
        folder.with_name("elsewhere").rename(folder)
        assert ids(engine.pool([RED_FISH], 9)[0]) == [each.id for each in FISH]


def test_a_search_that_does_not_wait_says_so(address: str) -> None:
    """Until somebody builds the index."""
    with LanceEngine(address, stale=True) as stale, LanceEngine(address) as exact:
        filled(stale, FISH)
        assert stale.pool([RED_FISH], 9)[0].complete  # nobody could search without any index
        filled(exact, [Passage("new", "red red fish")])
        (pool,) = stale.pool([RED_FISH], 9)
        assert not pool.complete
        assert not np.any(pool.sparse_exact)
        assert ids(pool) == [*(each.id for each in FISH), "new"]
        (wanted,) = exact.pool([RED_FISH], 9)
        assert np.abs(wanted.sparse - pool.sparse).max() > 1e-3
        assert_same(stale.pool([RED_FISH], 9), [wanted], 9)


def test_a_passage_without_a_word_counts_as_one_of_a_single_word(address: str) -> None:
    """LanceDB would not count it otherwise; nothing finds it by words."""
    with filled(LanceEngine(address), [*FISH, Passage("blank", "?!")]) as engine:
        index = filled(HybridIndex(), [*FISH, Passage("blank", "other")])
        (pool,), (wanted,) = (each.pool([RED_FISH], 9) for each in (engine, index))
        assert ids(pool) == ids(wanted)
        assert pool.sparse == pytest.approx(wanted.sparse)
        assert pool.sparse[-1] == 0


def test_what_lancedb_cannot_do_is_told(tmp_path: Path) -> None:
    """Its own constants, and an address that leads nowhere."""
    with pytest.raises(ValueError, match=r"k1=1\.2, not 2\.0: leave it out"):
        LanceEngine(f"lancedb://{tmp_path}", k1=2.0)
    (tmp_path / "file").touch()
    with pytest.raises(EngineError, match=r"lancedb://.*/file does not answer"):
        LanceEngine(f"lancedb://{tmp_path}/file")


def test_two_that_write_and_search_at_once(address: str) -> None:
    """Each with a connection of its own, as two processes have: none fails, no passage doubles."""
    with LanceEngine(address) as first, LanceEngine(address) as second:
        filled(first, FISH[:1])

        def work(engine: LanceEngine) -> None:
            for n in range(25):
                filled(engine, catch(n % 8))
                (pool,) = engine.pool([RED_FISH], 500)
                assert len(pool.passages) > n

        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(work, engine) for engine in (first, second)]:
                each.result()
        assert first.count() == second.count() == 161
        assert first.pool([RED_FISH], 500)[0].complete


def write_on(address: str, pipe: Any) -> None:
    with LanceEngine(address) as engine:
        for n in range(1000):
            filled(engine, catch(n))
            engine.pool([RED_FISH], 3)
            pipe.send(n)


def test_a_writer_that_is_killed_loses_nothing(address: str) -> None:
    """Amid writes and indexing; what was acknowledged is there, once, and scored exactly."""
    with filled(LanceEngine(address), FISH) as engine:
        here, there = multiprocessing.Pipe()
        spawn = multiprocessing.get_context("spawn").Process
        writer = spawn(target=write_on, args=(address, there))
        writer.start()
        while here.recv() < 3:
            pass
        time.sleep(0.03)
        assert writer.pid
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        batches, rest = divmod(engine.count(), 20)
        assert (rest, batches >= 4) == (5, True)
        index = filled(HybridIndex(), FISH)
        for n in range(batches):
            filled(index, catch(n))
        assert_same(engine.pool([RED_FISH], 500), index.pool([RED_FISH], 500), 500)
