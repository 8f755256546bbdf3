"""The approximate dense leg: what it may miss, and what it may not."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest

from shared_core import HybridIndex
from shared_core.index.dense.products import best_of_all
from shared_core.index.metadata import Where
from shared_core.index.searching import BLOCK
from shared_core.native import kernels

from .making import clustered_vectors, content, found_ids, passages, preselect_from

pytestmark = pytest.mark.usefixtures("either_way")

N, DIM = 1600, 8
SMALL = 300
KINDS = ("sq8", "ivf", "hnsw")
RECALL = {"sq8": 0.999, "ivf": 0.95, "hnsw": 0.97}
"""Share of the exact top 10 that is found; on these data each finds more than this."""


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


def build(kind: str, vectors: np.ndarray, *, metric: str = "cosine") -> HybridIndex:
    index = HybridIndex(dense=kind, metric=metric)  # type: ignore[arg-type]
    index.add(passages([""] * len(vectors)), vectors)
    return index


@pytest.fixture(scope="module")
def indexes(vectors: np.ndarray) -> dict[str, HybridIndex]:
    """One index of each kind, for tests that do not change them."""
    with pytest.MonkeyPatch.context() as patch:
        preselect_from(SMALL, patch)
        return {kind: build(kind, vectors) for kind in ("flat", *KINDS)}


def recall(
    approximate: HybridIndex, flat: HybridIndex, queries: np.ndarray, **options: object
) -> float:
    found = total = 0
    for query in queries:
        exact = found_ids(flat.search("", query, k=10, **options))  # type: ignore[arg-type]
        near = found_ids(approximate.search("", query, k=10, **options))  # type: ignore[arg-type]
        found, total = found + len({*exact} & {*near}), total + len(exact)
    return found / total


def is_preselecting(index: HybridIndex) -> bool:
    return index._state.dense.approximate is not None


def test_more_than_the_visited_lists_hold_is_wanted_of_long_vectors(vectors: np.ndarray) -> None:
    """FAISS fills up with -FLT_MAX, which float32 cannot stretch."""
    long = vectors * 1e4
    index = build("ivf", long, metric="inner_product")
    found = index.search("", long[0], k=10, fetch_k=len(long) // 2)
    assert found_ids(found)[0] == f"p{np.argmax(long @ long[0])}"


@pytest.mark.parametrize("kind", KINDS)
def test_recall_against_flat(
    kind: str, indexes: dict[str, HybridIndex], queries: np.ndarray
) -> None:
    """Most of the exact top 10 on clustered vectors, at the default depth."""
    assert is_preselecting(indexes[kind])
    assert recall(indexes[kind], indexes["flat"], queries) >= RECALL[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_recall_at_the_dimension_of_real_embeddings(kind: str) -> None:
    """Where FAISS has kernels that the few dimensions of the other tests never reach."""
    made = clustered_vectors(N + 20, 384)
    vectors, queries = made[:N], made[N:]
    assert recall(build(kind, vectors), build("flat", vectors), queries) >= RECALL[kind] - 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_recall_with_inner_product(kind: str, vectors: np.ndarray, queries: np.ndarray) -> None:
    """Vectors of many lengths: the 8 bits have to span the longest."""
    stretched = vectors[:800] * np.random.default_rng(1).uniform(0.2, 3, (800, 1)).astype(
        np.float32
    )
    flat, near = (build(name, stretched, metric="inner_product") for name in ("flat", kind))
    assert recall(near, flat, queries[:20]) >= 0.9


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
@pytest.mark.parametrize("dim", [16, 32, 100, 384])
def test_flat_finds_what_a_matrix_product_finds(dim: int, metric: str) -> None:
    """FAISS has another kernel for each kind of dimension; what it is asked must suit them all."""
    rng = np.random.default_rng(dim)
    vectors = rng.standard_normal((600, dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if metric == "inner_product":
        vectors *= rng.uniform(0.2, 3, (600, 1)).astype(np.float32)
    index = build("flat", vectors, metric=metric)
    assert is_preselecting(index)
    for query in vectors[:20] + 0.5 * vectors[20:40]:
        found = index.search("", query, k=10, fetch_k=10, alpha=1.0)
        best = (-(vectors @ query)).argsort(kind="stable")[:10]
        assert found_ids(found) == [f"p{row}" for row in best]


@pytest.mark.parametrize("size", [1e-20, 1e-24, 1e-30, 1e-36])
def test_flat_is_exact_for_queries_that_are_next_to_nothing(size: float) -> None:
    """Their squares are 0 in float32, and a bound made of them would prove anything."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((600, 16)).astype(np.float32)
    vectors[0] *= 1e3
    index = build("flat", vectors, metric="inner_product")
    for query in (size * rng.standard_normal((5, 16))).astype(np.float32):
        found = index.search("", query, k=10, fetch_k=10, alpha=1.0)
        best = (-np.vecdot(vectors, query)).argsort(kind="stable")[:10]
        assert {*found_ids(found)} == {f"p{row}" for row in best}


@pytest.mark.parametrize("dim", [32, 384])
def test_the_short_list_is_proven_on_unit_vectors(
    dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or every query would be scanned twice."""
    vectors = clustered_vectors(N, dim)
    dense = build("flat", vectors)._state.dense
    assert dense.approximate is not None
    scans = []

    def counted(*args: object) -> object:
        scans.append(args)
        return best_of_all(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(kernels, "built", False)
    monkeypatch.setattr("shared_core.index.dense.view.best_of_all", counted)
    for query in vectors[:20]:
        dense.best(dense.unit(query)[None], 10)
    assert len(scans) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_one_query_keeps_faiss_to_one_thread(
    kind: str, indexes: dict[str, HybridIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team of threads waits for the slowest of them, which takes long where cores are busy."""
    before, asked = faiss.omp_get_max_threads(), []
    index = indexes[kind]._state.dense.approximate.index  # type: ignore[union-attr]
    search = type(index).search

    def counted(*args: object, **options: object) -> object:
        asked.append(faiss.omp_get_max_threads())
        return search(*args, **options)

    monkeypatch.setattr(type(index), "search", counted)
    monkeypatch.setattr(kernels, "built", False)
    faiss.omp_set_num_threads(2)
    try:
        indexes[kind].search("", clustered_vectors(1, DIM)[0], k=10)
        assert asked == [1]
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_exact(kind: str, indexes: dict[str, HybridIndex], queries: np.ndarray) -> None:
    """What is found carries the score that flat gives it, bit for bit."""
    for query in queries[:10]:
        exact = indexes["flat"].search("", query, k=N, alpha=1.0)
        by_id = dict(zip(found_ids(exact), exact.dense, strict=True))
        near = indexes[kind].search("", query, k=10, alpha=1.0)
        assert near.dense == [by_id[id] for id in found_ids(near)]


@pytest.mark.parametrize("kind", ["flat", *KINDS])
@pytest.mark.parametrize("where", [None, {"lang": "en"}])
def test_a_batch_gives_the_same(
    kind: str,
    where: Where,
    indexes: dict[str, HybridIndex],
    queries: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit for bit what one search at a time gives, over several blocks."""
    asked = np.concatenate([queries, queries[::-1]])[: 2 * BLOCK + 1]
    assert len(asked) == 2 * BLOCK + 1
    together = indexes[kind].search_batch([""] * len(asked), asked, where=where)
    assert together == [indexes[kind].search("", query, where=where) for query in asked]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", ["en", ["en", "de"]])
def test_a_filter_holds(
    kind: str, wanted: object, indexes: dict[str, HybridIndex], queries: np.ndarray
) -> None:
    """Nothing forbidden is found, and recall among the allowed ones is as good."""
    where = {"lang": wanted}
    for query in queries[:10]:
        found = indexes[kind].search("", query, k=10, where=where)
        assert len(found) == 10
        assert all(passage.metadata["lang"] in wanted for passage in found.passages)  # type: ignore[operator]
    least = RECALL[kind] - 0.02
    assert recall(indexes[kind], indexes["flat"], queries, where=where) >= least


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_that_allows_only_far_passages_still_finds_k(kind: str) -> None:
    """Lists and neighbours near the query hold none of them; k must come back all the same."""
    near, far = np.eye(2, 8)[:, None] + 0.05 * clustered_vectors(2400, 8).reshape(2, 1200, 8)
    index = build(kind, np.concatenate([near, far[:200]]))
    assert is_preselecting(index)
    found = index.search("", near[0], k=10, where=lambda metadata: metadata["n"] >= 1200)
    assert len(found) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_deep_search_finds_k(
    kind: str, indexes: dict[str, HybridIndex], queries: np.ndarray
) -> None:
    """k of half the corpus comes back in full, and k beyond it gives all of it."""
    assert len(indexes[kind].search("", queries[0], k=N // 2)) == N // 2
    assert len(indexes[kind].search("", queries[0], k=2 * N)) == N


@pytest.mark.parametrize("kind", KINDS)
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
        for query in queries[:10]:
            assert not {*found_ids(near.search("", query, k=20))} & {*gone}
        assert recall(near, flat, queries) >= RECALL[kind] - 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_added_is_found_at_once(kind: str, vectors: np.ndarray) -> None:
    """While it waits outside and after it was taken in: by its own vector, at rank 0."""
    index = build(kind, vectors[:1000])
    taken_in = []
    for start in range(1000, N, 60):
        index.add(passages([""] * 60, prefix=f"late{start}-"), vectors[start : start + 60])
        dense = index._state.dense
        assert dense.approximate is not None
        taken_in.append(dense.approximate.size == dense.size)
        for row in (0, 59):
            ranking = index.search("", vectors[start + row], k=1, alpha=1.0)
            assert found_ids(ranking) == [f"late{start}-{row}"]
    assert {*taken_in} == {True, False}


def test_an_inverted_file_is_trained_anew_when_it_has_grown_far(
    vectors: np.ndarray, queries: np.ndarray
) -> None:
    """Five times the rows it was trained on: lists made for the few would be too few."""
    index, flat = build("ivf", vectors[:320]), build("flat", vectors)
    index.delete(index.ids)
    for start in range(0, N, 320):
        part = passages([""] * N)[start : start + 320]
        index.add(part, vectors[start : start + 320])
    dense = index._state.dense
    assert dense.approximate is not None
    assert dense.approximate.trained > 1200
    assert recall(index, flat, queries) >= RECALL["ivf"] - 0.03


def test_growth_leaves_the_snapshot_before_it_alone(vectors: np.ndarray) -> None:
    """FAISS indexes grow in place; a search under way must not see half-added rows."""
    for kind in KINDS:
        index = build(kind, vectors[:400])
        before = index._state.dense.approximate
        assert before is not None
        index.add(passages([""] * 400, prefix="late"), vectors[400:800])
        assert before.size == 400
        assert index._state.dense.approximate is not before


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str, indexes: dict[str, HybridIndex], tmp_path: Path) -> None:
    """The loaded index finds the same, and preselects rather than scan."""
    indexes[kind].save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index")
    assert is_preselecting(loaded)
    for query in clustered_vectors(10, DIM, seed=3):
        assert content(loaded.search("", query)) == content(indexes[kind].search("", query))
    loaded.add(passages(["late"], prefix="late"), [clustered_vectors(1, DIM, seed=9)[0]])
    assert len(loaded) == N + 1


@pytest.mark.parametrize("kind", KINDS)
def test_few_passages_are_searched_exactly(kind: str, vectors: np.ndarray) -> None:
    """Below the threshold nothing is preselected, so nothing can be missed."""
    index, flat = build(kind, vectors[: SMALL - 1]), build("flat", vectors[: SMALL - 1])
    assert not is_preselecting(index)
    assert index.search("", vectors[3]) == flat.search("", vectors[3])


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_that_are_all_zero_or_all_equal(kind: str) -> None:
    """Nothing to tell apart: k come back, and nothing breaks on the way to 8 bits."""
    for value in (0.0, 0.7):
        index = build(kind, np.full((SMALL, 4), value))
        assert len(index.search("", [1.0, 0, 0, 0], k=10)) == 10
