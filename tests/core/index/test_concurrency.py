"""Many threads on one index: every search sees one whole state."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.index.sparse import snapshot
from tests.core.making import make_index, random_vectors, zipf_texts


@pytest.fixture(autouse=True)
def switch_often() -> object:
    """Let threads take turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(usual)


def run_while(work: Callable[[], object], seconds: float, writer: Callable[[], object]) -> None:
    """Run `work` in four threads, and `writer` in one, over and over."""
    until = time.monotonic() + seconds

    def repeat(call: Callable[[], object]) -> None:
        while time.monotonic() < until:
            call()

    with ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(repeat, call) for call in (*[work] * 4, writer)]:
            done.result()


def test_sixteen_threads_get_what_one_gets() -> None:
    """Every number of every ranking."""
    index = make_index(300)
    queries = [*zip(zipf_texts(60, seed=5, longest=6), random_vectors(60, seed=6), strict=True)] * 4
    serial = [index.search(text, vector, where={"lang": "en"}) for text, vector in queries]
    with ThreadPoolExecutor(16) as pool:
        threaded = pool.map(lambda query: index.search(*query, where={"lang": "en"}), queries)
        assert [*threaded] == serial


def test_searches_see_one_whole_state_while_passages_come_and_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Through growth and compactions: scores belong to the passages they stand with.

    Ten passages are replaced together, again and again: never two versions, never nine.
    """
    monkeypatch.setattr(snapshot, "COMPACT", 50)
    index, query, version = make_index(40), random_vectors(1, seed=9)[0], 0
    vectors = np.concatenate([random_vectors(40), random_vectors(40, seed=2)])
    ids = [f"{name}{n}" for name, count in (("p", 40), ("x", 10), ("y", 30)) for n in range(count)]
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    cosine = dict(zip(ids, cosines.tolist(), strict=True))

    def replace() -> None:
        nonlocal version
        version += 1
        index.add([Passage(id, "w1", {"version": version}) for id in ids[40:50]], vectors[40:50])

    def come_and_go() -> None:
        replace()
        index.add([Passage(id, f"w1 {id}") for id in ids[50:]], vectors[50:])
        index.delete(ids[50:])

    def search() -> None:
        assert {"p7", "x3"} == {each.id for each in index.get(["p7", "x3"]) if each.id in index}
        ranking = index.search("w1 w2", query, k=80)
        found = {passage.id for passage in ranking.passages}
        assert (len(ranking), found >= {*ids[:50]}) in ((50, True), (80, True))
        assert len(found) == len(ranking)
        versions = {p.metadata["version"] for p in ranking.passages if "version" in p.metadata}
        assert len(versions) == 1
        np.testing.assert_allclose(
            ranking.dense, [cosine[passage.id] for passage in ranking.passages], atol=1e-5
        )

    replace()
    run_while(search, 1.2, come_and_go)
    assert version > 20


class Meddling(str):
    """A token that has something done while it is copied."""

    meanwhile: ClassVar[list[Callable[[], object]]] = []

    def __reduce__(self) -> tuple[type, tuple[str]]:
        for call in self.meanwhile:
            call()
        return str, (str(self),)


@pytest.mark.parametrize("copied", [deepcopy, pickle.dumps])
def test_a_copy_is_made_while_texts_are_added(
    copied: Callable[[object], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each word of it that is copied finds the index a word further."""
    words = (f"w{n}" for n in range(1000))
    index = HybridIndex(tokenizer=meddling)

    def add() -> None:
        index.add([Passage(word := next(words), word)], [[1.0]])

    add()
    add()
    monkeypatch.setattr(Meddling, "meanwhile", [add])
    copied(index)
    assert len(index) > 2


def meddling(text: str) -> list[str]:
    return [Meddling(word) for word in text.split()]


def test_what_a_search_remembers_is_no_part_of_a_copy() -> None:
    """Else it would change while another thread copies it."""
    index = make_index(60)
    index.search("w1 w2 w3", random_vectors(1)[0])
    state: Any = index.__getstate__()["_state"]
    assert (len(index._state.sparse.idf), len(state.sparse.idf)) == (3, 0)


def test_many_writers_lose_nothing() -> None:
    """Eight threads add and delete their own passages; what should be there is there."""
    index = HybridIndex()

    def write(worker: int) -> None:
        for n in range(20):
            index.add([Passage(f"{worker}-{n}", f"w{n}")], [[1.0, worker]])
            if n % 2:
                assert index.delete([f"{worker}-{n}"]) == [f"{worker}-{n}"]

    with ThreadPoolExecutor(8) as pool:
        [*pool.map(write, range(8))]
    assert {*index.ids} == {f"{worker}-{n}" for worker in range(8) for n in range(0, 20, 2)}
    assert len(index.search("w0", [1.0, 0.0], k=1000)) == 80
