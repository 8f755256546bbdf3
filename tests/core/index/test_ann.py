"""The approximate dense leg: what it may miss, and what it may not."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from shared_core import HybridIndex
from shared_core.index.ann import AnnIndex
from shared_core.types import Query
from tests.core.making import clustered_vectors, content, found_ids, passages, preselect_from

N, DIM, SMALL = 1600, 8, 300
RECALL = {"ivf": 0.93, "hnsw": 0.95}
"""Share of the exact top 10 that is found; on these data each finds more than this."""

pytestmark = pytest.mark.parametrize("kind", RECALL)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preselect from few rows up, so that the tests stay quick."""
    preselect_from(SMALL, monkeypatch)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return clustered_vectors(N, DIM)


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    """Near the vectors, from the same centres."""
    return clustered_vectors(N + 40, DIM)[N:]


def build(kind: Any, vectors: np.ndarray, metric: Any = "cosine") -> HybridIndex:
    index = HybridIndex(dense=kind, metric=metric)
    index.add(passages([""] * len(vectors)), vectors)
    return index


@pytest.fixture(scope="module")
def indexes(vectors: np.ndarray) -> dict[str, HybridIndex]:
    """One index of each kind, for tests that do not change them."""
    with pytest.MonkeyPatch.context() as patch:
        preselect_from(SMALL, patch)
        return {kind: build(kind, vectors) for kind in ("flat", *RECALL)}


def recall(
    near: HybridIndex, flat: HybridIndex, queries: np.ndarray, where: object = None
) -> float:
    found = [
        [{*found_ids(each.search("", query, k=10, where=where))} for each in (flat, near)]  # type: ignore[arg-type]
        for query in queries
    ]
    return sum(len(one & other) for one, other in found) / sum(len(one) for one, _ in found)


def ann_of(index: HybridIndex) -> AnnIndex:
    ann = index._state.dense.ann
    assert ann is not None
    return ann


def test_what_is_found(kind: str, indexes: dict[str, HybridIndex], queries: np.ndarray) -> None:
    """Most of the exact top 10; each with the score that flat gives it, alone and in a batch."""
    near, flat = indexes[kind], indexes["flat"]
    assert ann_of(near).size == N
    for where in (None, {"lang": "en"}):
        assert recall(near, flat, queries, where) >= RECALL[kind]
    asked = [Query("", query) for query in queries]
    for query, pool, whole in zip(asked, near.pool(asked, 10), flat.pool(asked, N), strict=True):
        by_id = dict(zip((each.id for each in whole.passages), whole.dense, strict=True))
        assert pool.dense.tolist() == [by_id[each.id] for each in pool.passages]
        (alone,) = near.pool([query], 10)
        assert [each.id for each in alone.passages] == [each.id for each in pool.passages]


def test_vectors_that_come_later_may_be_longer(kind: str) -> None:
    """With inner products, the first batch must not set a scale to which later ones are clipped."""
    made = clustered_vectors(N + 20, 32)
    early, late, queries = made[: N // 2], 1e9 * made[N // 2 : N], made[N:]
    flat, near = (build(each, early, "inner_product") for each in ("flat", kind))
    for index in (flat, near):
        index.add(passages([""] * len(late), prefix="late"), late)
    assert recall(near, flat, queries) == 1.0


def test_a_filter_that_allows_only_far_passages_still_finds_k(kind: str) -> None:
    """Lists and neighbours near the query hold none of them; k must come back all the same."""
    near, far = np.eye(2, 8)[:, None] + 0.05 * clustered_vectors(2400, 8).reshape(2, 1200, 8)
    index = build(kind, np.concatenate([near, far[:200]]))
    found = index.search("", near[0], k=10, where=lambda metadata: metadata["n"] >= 1200)
    assert len(found) == 10
    assert all(passage.metadata["n"] >= 1200 for passage in found.passages)


def test_a_deep_search_finds_k(
    kind: str, indexes: dict[str, HybridIndex], queries: np.ndarray
) -> None:
    """k of half the corpus comes back in full, k beyond it gives all; also where all are equal."""
    assert len(indexes[kind].search("", queries[0], k=N // 2)) == N // 2
    assert len(indexes[kind].search("", queries[0], k=2 * N)) == N
    for value in (0.0, 0.7):
        assert len(build(kind, np.full((SMALL, 4), value)).search("", [1.0, 0, 0, 0], k=10)) == 10


def test_deleted_passages_are_not_found(
    kind: str, vectors: np.ndarray, queries: np.ndarray
) -> None:
    """Neither before compaction nor after, and recall among the rest stays."""
    flat, near = build("flat", vectors), build(kind, vectors)
    gone = [f"p{n}" for n in range(0, N, 3)]
    for compact in (False, True):
        for index in (flat, near):
            index.delete(gone)
            if compact:
                index.compact()
        assert not {*found_ids(near.search("", queries[0], k=20))} & {*gone}
        assert recall(near, flat, queries) >= RECALL[kind]


def test_what_is_added_is_found_at_once(
    kind: str, vectors: np.ndarray, queries: np.ndarray
) -> None:
    """While it waits outside and once it was taken in; earlier snapshots stay as they were.

    Lists made for the few would be too few for five times the rows, so they are made anew.
    """
    index = build(kind, vectors[:320])
    taken_in = []
    for start in range(320, N, 60):
        before = ann_of(index)
        size = before.size
        index.add(passages([""] * N)[start : start + 60], vectors[start : start + 60])
        assert before.size == size
        taken_in.append(ann_of(index).size == len(index))
        for row in (0, 19):
            ranking = index.search("", vectors[start + row], k=1, alpha=1.0)
            assert found_ids(ranking) == [f"p{start + row}"]
    assert {*taken_in} == {True, False}
    assert recall(index, build("flat", vectors), queries) >= RECALL[kind]
    if kind == "ivf":
        assert ann_of(index).index.nlist > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_grows_in_a_forked_process(kind: str, vectors: np.ndarray) -> None:
    """The threads are gone there with which FAISS has made it."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    try:
        index = build(kind, vectors[:700])
        more = passages([""] * N)[700:], vectors[700:]
        child = multiprocessing.get_context("fork").Process(target=index.add, args=more)
        child.start()
        child.join(60)
        child.kill()
        child.join()
        assert child.exitcode == 0
    finally:
        faiss.omp_set_num_threads(before)


def test_round_trip(kind: str, indexes: dict[str, HybridIndex], tmp_path: Path) -> None:
    """The loaded index finds the same by the same FAISS index, and grows."""
    indexes[kind].save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index")
    for query in clustered_vectors(10, DIM, seed=3):
        assert content(loaded.search("", query)) == content(indexes[kind].search("", query))
    before = ann_of(loaded)
    loaded.add(passages(["late"], prefix="late"), clustered_vectors(1, DIM, seed=9))
    assert (len(loaded), ann_of(loaded)) == (N + 1, before)
