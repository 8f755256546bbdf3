"""The exact dense leg, and the hand-over of its memory from snapshot to snapshot."""

from __future__ import annotations

import ctypes
import gc
import warnings
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared_core.index.dense.products import products
from shared_core.index.dense.view import DenseView, _as_floats

from .making import preselect_from, random_vectors, runs_beside

pytestmark = pytest.mark.usefixtures("either_way")


def view_of(vectors: np.ndarray, metric: str = "cosine") -> DenseView:
    view = DenseView(metric, "flat")  # type: ignore[arg-type]
    return view.extended(view.checked(vectors, [str(row) for row in range(len(vectors))]))


def best_rows(
    view: DenseView, query: npt.ArrayLike, k: int, allowed: np.ndarray | None = None
) -> list[int]:
    ((rows, _),) = view.best(view.unit(query)[None], k, allowed)
    return rows.tolist()


def scores_of(view: DenseView, query: npt.ArrayLike) -> np.ndarray:
    return products(view.vectors, view.unit(query), np.arange(view.size))


def few_valued(n: int, seed: int) -> np.ndarray:
    """Vectors with three values a component: every score is exact in float32, ties are many."""
    return np.random.default_rng(seed).integers(-1, 2, (n, 3)).astype(np.float32)


def best(scores: np.ndarray, k: int, allowed: np.ndarray) -> list[int]:
    rows = sorted(allowed.nonzero()[0].tolist(), key=lambda row: (-scores[row], row))
    return sorted(rows[:k])


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 400),
    k=st.integers(1, 40),
    keep=st.sampled_from([None, 0.9, 0.3, 0.02]),
)
def test_inner_product_finds_the_best_with_ties_by_row(
    seed: int, n: int, k: int, keep: float | None
) -> None:
    """Against a full sort, with filters from loose to one in fifty; scores are exact."""
    vectors, query = few_valued(n, seed), few_valued(1, seed + 1)[0]
    view = view_of(vectors, "inner_product")
    allowed = None if keep is None else np.random.default_rng(seed).random(n) < keep
    scores = vectors @ query
    expected = best(scores, k, np.ones(n, bool) if allowed is None else allowed)
    assert best_rows(view, query, k, allowed) == expected
    assert scores_of(view, query).tolist() == scores.tolist()


def test_cosine_does_not_see_lengths() -> None:
    """Vectors of one direction score the same, up to rounding, however long."""
    direction = random_vectors(1, 16)[0]
    view = view_of(direction * np.array([[0.01], [1], [300]]))
    np.testing.assert_allclose(scores_of(view, 7 * direction), 1, atol=1e-6)


def test_inner_product_sees_lengths() -> None:
    """Neither vectors nor queries are scaled."""
    view = view_of(np.array([[1.0, 0], [3, 0], [2, 0]]), "inner_product")
    assert scores_of(view, [2.0, 0]).tolist() == [2, 6, 4]
    assert best_rows(view, [2.0, 0], 1) == [1]


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_zero_vectors_score_zero(metric: str) -> None:
    """A passage or query without direction is neither NaN nor refused."""
    view = view_of(np.array([[0.0, 0], [1, 0], [-1, 0]]), metric)
    assert scores_of(view, [1.0, 0]).tolist() == [0, 1, -1]
    assert scores_of(view, [0.0, 0]).tolist() == [0, 0, 0]
    assert best_rows(view, [0.0, 0], 2) == [0, 1]


@pytest.mark.parametrize("size", [1e-18, 1e-21, 1e-23, 1e-37])
def test_cosine_does_not_see_that_vectors_are_next_to_nothing(size: float) -> None:
    """The squares of their components lose digits in float32, and then vanish."""
    vectors, query = random_vectors(50, 384), random_vectors(1, 384, seed=9)[0]
    usual, short = view_of(vectors), view_of(size * vectors)
    expected = scores_of(usual, query)
    for asked in (query, size * query):
        np.testing.assert_allclose(scores_of(short, asked), expected, atol=1e-6)


def test_duplicate_vectors_come_in_row_order() -> None:
    """500 equal vectors among others: the first ones are found, whatever the depth."""
    vectors = random_vectors(1000, seed=3)
    vectors[250:750] = vectors[250]
    view = view_of(vectors)
    for k in (1, 10, 400):
        assert best_rows(view, vectors[250], k) == list(range(250, 250 + k))


@pytest.mark.parametrize("dim", [384, 768, 4096])
def test_a_batch_finds_what_one_query_finds_where_sums_are_long(dim: int) -> None:
    """Components of one sign: sums in another order would be further off."""
    rng = np.random.default_rng(2)
    view = view_of(0.3 + 1e-3 * (rng.random((3000, dim)) < 0.01))
    query = view.unit(np.full(dim, 0.3))
    ((single, _),) = view.best(query[None], 20)
    for batched, _ in view.best(np.stack([query] * 5), 20):
        assert batched.tolist() == single.tolist()


@pytest.mark.parametrize("keep", [None, 0.5, 0.02])
def test_a_batch_gives_the_same_rows_and_scores_bit_for_bit(keep: float | None) -> None:
    """Near-equal vectors are what a preselection could get wrong."""
    base = random_vectors(1, 96, seed=5)
    vectors = base + 1e-5 * random_vectors(3000, 96, seed=6)
    queries = base + 1e-5 * random_vectors(20, 96, seed=7)
    allowed = None if keep is None else np.random.default_rng(0).random(3000) < keep
    for metric in ("cosine", "inner_product"):
        view = view_of(vectors, metric)
        units = np.stack([view.unit(query) for query in queries])
        for unit, batched in zip(units, view.best(units, 10, allowed), strict=True):
            (single,) = view.best(unit[None], 10, allowed)
            assert [part.tolist() for part in batched] == [part.tolist() for part in single]


def test_a_snapshot_outlives_growth() -> None:
    """Rows come one by one, through several moves of the memory; old views stay as they were."""
    vectors = random_vectors(100, 4, seed=1)
    view, older = DenseView("cosine", "flat"), []
    for row in range(100):
        view = view.extended(view.checked(vectors[row : row + 1], ["x"]))
        older.append((view, view.vectors.copy()))
    for size, (snapshot, copy) in enumerate(older, start=1):
        assert snapshot.size == size
        np.testing.assert_array_equal(snapshot.vectors, copy)
    together = view_of(vectors)
    np.testing.assert_array_equal(view.vectors, together.vectors)


def test_vectors_keep_their_memory_alive() -> None:
    """FAISS owns it: an array that outlives its view must not point into freed memory."""
    view = view_of(random_vectors(10))
    store = weakref.ref(view.store)
    vectors = view.vectors
    del view
    gc.collect()
    assert vectors.shape == (10, 8)
    assert store() is not None


def test_the_callers_vectors_are_copied_and_left_alone() -> None:
    """Scaling to unit length happens on a copy; changing the original later does nothing."""
    vectors = np.array([[3.0, 4.0]], np.float32)
    view = view_of(vectors)
    assert vectors.tolist() == [[3, 4]]
    vectors[:] = 0
    np.testing.assert_allclose(view.vectors, [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, np.nan], [1, 2]], "embedding of a holds NaN"),
        ([[1.0, 2], [np.inf, 2]], "embedding of b holds NaN, infinite"),
        ([[1e30, 2], [1, 2]], "huge"),
        ([[1.0, 2, 3], [1, 2, 3]], "dimension 2, got dimension 3"),
        ([[1.0, 2]], r"expected 2 embeddings, got shape \(1, 2\)"),
        ([1.0, 2], r"expected 2 embeddings, got shape \(2,\)"),
        (
            [[1.0, 2], [1]],
            "of b has dimension 1, that of a has 2: embed all of them with one model",
        ),
        ([[1.0, 2], None], "not numbers of equal shape"),
        ([["a", "b"], ["c", "d"]], "not numbers of equal shape"),
        ([[], []], r"shape \(2, 0\)"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(vectors: object, message: str) -> None:
    """The message says which passage, or which shape."""
    view = view_of(np.eye(2))
    with pytest.raises(ValueError, match=message):
        view.checked(vectors, ["a", "b"])  # type: ignore[arg-type]


NOT_REAL = [
    np.array([1 + 2j, 1]),
    ["1", "2"],
    np.array(["1", "2"]),
    [b"1", b"2"],
    np.array([1, 2], "datetime64[s]"),
]
"""NumPy would make floats of them."""


@pytest.mark.parametrize("vector", NOT_REAL)
def test_embeddings_that_are_no_real_numbers_are_refused(vector: Any) -> None:
    """In a list, a tuple and an array, an array even among others, and as the query's."""
    view = view_of(np.eye(2))
    for vectors in (
        [vector, [1.0, 2.0]],
        [[1.0, 2.0], np.array(vector)],
        (vector, vector),
        np.array([vector] * 2),
    ):
        with pytest.raises(ValueError, match="embeddings are not numbers of equal shape: got val"):
            view.checked(vectors, ["a", "b"])
    with pytest.raises(ValueError, match="query is not numbers of equal shape: got values of type"):
        view.unit(vector)


@pytest.mark.parametrize(
    "vector",
    [
        [1.0, np.nan],
        [1.0, np.inf],
        [1e300, 0.0],
        [1e20, 0.0],
        [10**400, 1],
        [1.0],
        [1.0, 2, 3],
        [[1.0, 2]],
        5.0,
        "ab",
        None,
        {1.0, 2.0},
        {"a": 1.0, "b": 2.0},
    ],
)
def test_a_query_vector_that_does_not_fit_is_refused(vector: object) -> None:
    """Also a scalar, and a matrix of one row; nothing is said beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError):
            view_of(np.eye(2)).unit(vector)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_a_query_vector_is_the_same_in_every_form(metric: str) -> None:
    """Bit for bit: else near ties would come in another order."""
    view = view_of(random_vectors(2, 384), metric)
    for seed in range(20):
        query = random_vectors(1, 384, seed=seed)[0]
        forms = [
            query.tolist(),
            tuple(query.tolist()),
            list(query),
            query.astype(np.float64),
            query.astype(">f4"),
            np.repeat(query, 2)[::2],
            np.stack([query, query], axis=1)[:, 0],
            (ctypes.c_float * 384)(*query),
            memoryview(b"\0" + query.tobytes())[1:].cast("f"),
            torch.from_numpy(query),
        ]
        expected = view.unit(query).tolist()
        assert all(view.unit(form).tolist() == expected for form in forms)


def test_compacting_keeps_the_order() -> None:
    """Rows are numbered anew; none left makes an empty view."""
    view = view_of(random_vectors(20, seed=2))
    keep = np.arange(20) % 3 == 0
    compacted = view.compacted(keep)
    np.testing.assert_allclose(compacted.vectors, view.vectors[keep], rtol=1e-6)
    assert view.compacted(np.zeros(20, bool)).size == 0


@pytest.mark.parametrize("spread", [1.0, 0.05, 0.0])
@pytest.mark.parametrize("filtered", [False, True])
def test_flat_is_exact_where_it_preselects(
    spread: float, filtered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 8-bit scan proves its short list complete, or all is scanned: also among near copies."""
    preselect_from(500, monkeypatch)
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((10, 16))
    vectors = centres[rng.integers(0, 10, 3000)] + spread * rng.standard_normal((3000, 16))
    view = DenseView("cosine", "flat")
    view = view.extended(view.checked(vectors[:2900], [""] * 2900))
    view = view.extended(view.checked(vectors[2900:], [""] * 100))
    assert view.approximate is not None
    assert view.approximate.size == 2900
    allowed = rng.random(3000) < 0.3 if filtered else None
    for vector in vectors[::300]:
        scores = scores_of(view, vector)
        np.testing.assert_allclose(scores, view.vectors @ view.unit(vector), atol=1e-6)
        among = np.ones(3000, bool) if allowed is None else allowed
        assert best_rows(view, vector, 20, allowed) == best(scores, 20, among)


def test_products_that_underflow_tie() -> None:
    """All of them are 0, so the first rows come, whatever the vectors' 8-bit copies say."""
    vectors = np.zeros((600, 4), np.float32)
    vectors[:, 1] = vectors[300:, 0] = 1e-5
    view = view_of(vectors, "inner_product")
    assert best_rows(view, [1e-42, 0, 0, 0], 5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("step", [20, 450, 600])
def test_copies_of_rows_added_bit_by_bit_are_as_close_as_of_all_at_once(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the first rows were like: one component out of reach would widen every margin."""
    preselect_from(100, monkeypatch)
    vectors = random_vectors(600, 8, seed=3) * np.linspace(0.01, 1, 600)[:, None]
    whole, grown = view_of(vectors, "inner_product"), DenseView("inner_product", "flat")
    for start in range(0, 600, step):
        part = vectors[start : start + step]
        grown = grown.extended(grown.checked(part, [""] * len(part)))
    assert whole.approximate is not None
    assert grown.approximate is not None
    assert grown.approximate.margin <= 1.2 * whole.approximate.margin


@pytest.mark.parametrize("size", [1e-25, 1e-3, 1.0, 1e10])
def test_no_vector_is_longer_than_the_longest(size: float) -> None:
    """The bound is close, too: one far above would leave nothing to preselect."""
    vectors = size * random_vectors(50, 16, seed=4)
    view = view_of(vectors, "inner_product")
    lengths = np.linalg.norm(vectors.astype(np.float32).astype(np.float64), axis=1)
    assert lengths.max() <= view.longest <= 1.001 * lengths.max() + 1e-18


def test_other_threads_run_while_vectors_are_read() -> None:
    """Else a server would answer nothing while documents are added."""
    vectors = np.ones((1000, 1500)).tolist()
    assert runs_beside(lambda: _as_floats(vectors, "they are"))
    read = _as_floats(vectors, "they are")
    assert (read.shape, read.dtype) == ((1000, 1500), np.float32)
