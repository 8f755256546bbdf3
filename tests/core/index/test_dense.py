"""The exact dense leg, and the hand-over of its memory from snapshot to snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared_core.index.dense import DenseSnapshot
from tests.core.making import preselect_from, random_vectors

pytestmark = pytest.mark.usefixtures("either_way")


def snapshot_of(vectors: Any, metric: Any = "cosine") -> DenseSnapshot:
    return extended(DenseSnapshot(metric, "flat"), vectors)


def extended(snapshot: DenseSnapshot, vectors: Any) -> DenseSnapshot:
    return snapshot.extended(snapshot.checked(vectors, [str(row) for row in range(len(vectors))]))


def best_rows(snapshot: DenseSnapshot, query: npt.ArrayLike, k: int, allowed: Any = None) -> Any:
    ((rows, _),) = snapshot.top_k(snapshot.unit(query)[None], k, allowed)
    return rows.tolist()


def scores_of(snapshot: DenseSnapshot, query: npt.ArrayLike) -> np.ndarray:
    return snapshot.scores_of_rows(snapshot.unit(query), np.arange(snapshot.size))


def best(scores: np.ndarray, k: int, allowed: np.ndarray | None) -> list[int]:
    rows = range(scores.size) if allowed is None else allowed.nonzero()[0].tolist()
    return sorted(sorted(rows, key=lambda row: (-scores[row], row))[:k])


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 700),
    k=st.integers(1, 40),
    keep=st.sampled_from([None, 0.9, 0.3, 0.02]),
)
def test_inner_product_finds_the_best_with_ties_by_row(
    seed: int, n: int, k: int, keep: float | None
) -> None:
    """Against a full sort, with filters; three values a component tie often, and are exact."""
    rng = np.random.default_rng(seed)
    vectors, query = rng.integers(-1, 2, (n, 3)), rng.integers(-1, 2, 3)
    snapshot = snapshot_of(vectors, "inner_product")
    allowed = None if keep is None else rng.random(n) < keep
    scores = vectors @ query
    assert best_rows(snapshot, query, k, allowed) == best(scores, k, allowed)
    assert best_rows(snapshot, [0, 0, 0], k, allowed) == best(0 * scores, k, allowed)
    assert scores_of(snapshot, query).tolist() == scores.tolist()


def test_a_snapshot_outlives_growth() -> None:
    """Rows come one by one, through several moves of the memory; old ones stay as they were."""
    vectors = random_vectors(100, 4, seed=1)
    snapshot, older = DenseSnapshot("cosine", "flat"), []
    for row in range(100):
        snapshot = extended(snapshot, vectors[row : row + 1])
        older.append(snapshot)
    whole = snapshot_of(vectors)
    extended(older[50].apart(), -vectors[:1])
    for size, before in enumerate(older, start=1):
        assert before.vectors.tolist() == whole.vectors[:size].tolist()


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_the_callers_vectors_are_copied_and_left_alone(metric: str) -> None:
    """Scaling to unit length happens on a copy; changing the original later does nothing."""
    vectors, query = np.array([[3.0, 4.0]], np.float32), np.array([1.0, 0.0], np.float32)
    snapshot = snapshot_of(vectors, metric)
    unit, before = snapshot.unit(query), snapshot.vectors.tolist()
    assert vectors.tolist() == [[3, 4]]
    vectors[:] = query[:] = 0
    assert (snapshot.vectors.tolist(), unit.tolist()) == (before, [1, 0])


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, np.nan], [1, 2]], "embedding of a holds NaN"),
        ([[1e30, 2], [1, 2]], "huge"),
        ([[1.0, 2, 3], [1, 2, 3]], "dimension 2, got dimension 3"),
        ([[1.0, 2], [1]], "b: expected a vector of dimension 2, got dimension 1: all must"),
        (([1.0, 0.0], ["0.5", "0.5"]), "embedding of b is not numbers: got values of type <U3"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(vectors: npt.ArrayLike, message: str) -> None:
    """The message says which passage, or which shape; NumPy would make numbers of texts."""
    with pytest.raises(ValueError, match=message):
        snapshot_of(np.eye(2)).checked(vectors, ["a", "b"])


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_a_query_vector_is_the_same_in_every_form(metric: str) -> None:
    """Bit for bit: else near ties would come in another order."""
    snapshot = snapshot_of(random_vectors(2, 384), metric)
    query = random_vectors(1, 384, seed=3)[0]
    forms = [
        query.tolist(),
        query.astype(np.float64),
        np.repeat(query, 2)[::2],
        torch.from_numpy(query),
    ]
    expected = snapshot.unit(query).tolist()
    assert all(snapshot.unit(form).tolist() == expected for form in forms)


@pytest.mark.parametrize("spread", [1.0, 0.05, 0.0])
@pytest.mark.parametrize("filtered", [False, True])
def test_it_is_exact_where_it_preselects(
    spread: float, filtered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 8-bit scan leaves out nothing that it cannot exclude: also among near copies."""
    preselect_from(500, monkeypatch)
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((10, 16))
    vectors = centres[rng.integers(0, 10, 3000)] + spread * rng.standard_normal((3000, 16))
    snapshot = extended(snapshot_of(vectors[:2900]), vectors[2900:])
    allowed = rng.random(3000) < 0.3 if filtered else None
    for vector in vectors[::300]:
        scores = scores_of(snapshot, vector)
        np.testing.assert_allclose(scores, snapshot.vectors @ snapshot.unit(vector), atol=1e-6)
        assert best_rows(snapshot, vector, 20, allowed) == best(scores, 20, allowed)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e-24, 1e-36])
def test_it_is_exact_for_vectors_of_many_lengths(size: float) -> None:
    """And for queries whose squares are 0 in float32: a bound made of them would prove anything."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((600, 16)).astype(np.float32)
    vectors *= rng.uniform(0.2, 3, (600, 1)).astype(np.float32)
    vectors[0] *= 1e3
    snapshot = snapshot_of(vectors, "inner_product")
    for query in (size * rng.standard_normal((5, 16))).astype(np.float32):
        scores = np.vecdot(snapshot.vectors, query)
        assert best_rows(snapshot, query, 10) == sorted((-scores).argsort(kind="stable")[:10])


def test_products_that_underflow_tie() -> None:
    """All of them are 0, so the first rows come, whatever the vectors' 8-bit copies say."""
    vectors = np.zeros((600, 4), np.float32)
    vectors[:, 1] = vectors[300:, 0] = 1e-5
    snapshot = snapshot_of(vectors, "inner_product")
    assert best_rows(snapshot, [1e-42, 0, 0, 0], 5) == [0, 1, 2, 3, 4]
