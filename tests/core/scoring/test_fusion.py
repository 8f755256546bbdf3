"""Fusion of two legs: by score and by rank; odd and missing scores.

Equation 2 of CAUS by hand stands in `tests/papers/test_caus.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import rank
from shared_core.scoring.ranking import rank_pool
from shared_core.types import Pool, Ranking

NAN, INF = math.nan, math.inf
scores = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, NAN])
pools = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(scores, min_size=n, max_size=n)] * 2)
)


@given(
    pools,
    st.integers(1, 35),
    st.none() | st.floats(0, 1),
    st.sampled_from(["theoretical_min", "min_max", "rrf"]),
    st.booleans(),
)
def test_an_explanation_adds_up(
    pool: Any, k: int, alpha: float | None, fusion: Any, cosines: bool
) -> None:
    """In [0, 1], the weighted sum of its parts, best first; fewer are the head of all."""
    how: dict[str, Any] = {"alpha": alpha, "fusion": fusion, "cosines": cosines}
    n = len(pool[0])
    found = rank(*pool, k=n, **how)
    scores, dense_norm, sparse_norm = map(
        np.array, (found.scores, found.dense_norm, found.sparse_norm)
    )
    for part in (scores, dense_norm, sparse_norm):
        assert ((part >= 0) & (part <= 1)).all()
    total = found.alpha * dense_norm + (1 - found.alpha) * sparse_norm
    np.testing.assert_allclose(scores, total, atol=1e-12)
    assert (np.diff(scores) <= 0).all()
    for places in (found.indices, found.dense_rank, found.sparse_rank):
        assert sorted(places) == [*range(n)]
    assert found.dense_exact == [not math.isnan(pool[0][at]) for at in found.indices]
    assert (found.alpha if alpha is None else alpha, fusion) == (found.alpha, found.fusion)
    assert rank(*pool, k=k, **how) == found.at(range(min(k, n)))


def by_place(found: Ranking) -> Ranking:
    """Return the passages in the order in which they were given."""
    return found.at(np.argsort(found.indices).tolist())


def test_a_missing_score_stands_at_its_legs_floor() -> None:
    """NaN counts as the lowest that the leg gave, 0 where it gave none; the arrays are left."""
    dense, sparse = np.array([0.9, NAN, 0.5]), np.array([NAN, NAN, 3.0])
    found = by_place(rank(dense, sparse))
    assert (found.dense, found.sparse) == ([0.9, 0.5, 0.5], [3, 3, 3])
    assert (found.dense_norm[1], math.isnan(dense[1]), math.isnan(sparse[0])) == (0, True, True)
    assert rank([0.9, None, 0.5], [0, 0, 0]).dense == [0.9, 0.5, 0.5]  # type: ignore[list-item]
    silent = rank([NAN, NAN], [1.0, 2.0])
    assert (silent.dense_norm, silent.indices) == ([0, 0], [1, 0])


@pytest.mark.parametrize(
    ("dense", "sparse", "message"),
    [
        ([1.0, INF], [1.0, 2.0], "dense scores must be finite, got inf"),
        ([-1e308, 1e308], [1.0, 2.0], r"dense scores lie too far apart"),
        ([-1e308, 1e308, NAN], [1.0, 2.0, 3.0], r"too far apart: -1e\+308 to 1e\+308"),
        ([1.0, 2.0], [-INF, 2.0], "sparse scores must be finite, got -inf"),
        ([1.0], [1.0, 2.0], r"shapes \(1,\) and \(2,\)"),
        ([[1.0]], [1.0], r"dense scores must be one-dimensional, got shape \(1, 1\)"),
    ],
)
def test_scores_that_cannot_be_fused_are_refused(dense: Any, sparse: Any, message: str) -> None:
    """The message names the leg and the value."""
    with pytest.raises(ValueError, match=message):
        rank(dense, sparse)


@pytest.mark.parametrize("alpha", [-0.01, 1.01, NAN, "0.3", 0.3j, np.True_])
def test_an_alpha_out_of_range_is_refused(alpha: Any) -> None:
    """A ValueError that names it, whatever its type."""
    with pytest.raises(ValueError, match="alpha must"):
        rank([1.0], [1.0], alpha=alpha)


def test_what_is_exact_is_passed_on_rank_by_rank() -> None:
    """Of each leg its own, with a missing score."""
    exact = {
        "dense_exact": np.array([True, False, True]),
        "sparse_exact": np.array([0, 1, 1], bool),
    }
    pool = Pool((), np.array([0.1, 0.9, NAN]), np.array([1.0, 2.0, 3.0]), **exact)
    found = rank_pool(pool, k=3, alpha=0.0, fusion="min_max")
    assert found.indices == [2, 1, 0]
    assert found.dense_exact == [False, False, True]
    assert found.sparse_exact == [True, True, False]


def test_few_candidates() -> None:
    """No pool is not an error; a pool of one spans nothing, so that min-max gives 0."""
    for fusion in ("theoretical_min", "min_max", "rrf"):
        assert rank([], [], fusion=fusion).scores == []  # type: ignore[arg-type]
    assert rank([0.9], [7.0], fusion="min_max").scores == [0.0]
    assert rank([0.9], [7.0], cosines=True).scores == [pytest.approx(1.0)]


def test_reciprocal_rank_fusion_by_hand() -> None:
    """61 / (61 + rank) for each leg, weighted; the sparse leg does not rank its lowest."""
    found = rank([0.9, 0.8, 0.1], [0.0, 9.0, 3.0], alpha=0.5, fusion="rrf")
    assert found.indices == [1, 2, 0]
    assert found.dense_norm == pytest.approx([61 / 62, 61 / 63, 1])
    assert found.sparse_norm == pytest.approx([1, 61 / 62, 0])
    assert found.scores == pytest.approx([(61 / 62 + 1) / 2, (61 / 63 + 61 / 62) / 2, 0.5])


def test_the_theoretical_minimum_by_hand() -> None:
    """(s + 1) / (max + 1) of cosines, s / max of BM25, 0.85 to 0.15."""
    found = by_place(rank([0.6, 0.2, -0.2], [0.0, 8.0, 2.0], cosines=True))
    assert found.dense_norm == pytest.approx([1, 1.2 / 1.6, 0.8 / 1.6])
    assert found.sparse_norm == pytest.approx([0, 1, 0.25])
    assert found.scores == pytest.approx([0.85, 0.85 * 0.75 + 0.15, 0.85 / 2 + 0.15 / 4])
    assert found.alpha == 0.85


def test_scores_of_no_known_minimum_begin_at_their_lowest() -> None:
    """Distances, say; BM25 begins at 0, and either may go below, as rounded cosines do."""
    found = rank([-3.0, -1.0], [2.0, 4.0])
    assert found.dense_norm == pytest.approx([1, 0])
    assert found.sparse_norm == pytest.approx([1, 0.5])
    assert found.alpha == 0.5
    assert rank([-1.0000001, 1.0], [-0.5, 1.0], cosines=True).dense_norm[1] == 0


@pytest.mark.parametrize(("fusion", "weight"), [("min_max", 0.3), ("rrf", 0.5)])
def test_each_fusion_has_its_weight(fusion: Any, weight: float) -> None:
    """0.3 is that of the paper; a pool whose scores are cosines says so by its nearest."""
    assert rank([1.0], [1.0], fusion=fusion, cosines=True).alpha == weight
    scores = np.array([0.5, 0.1])
    for nearest, alpha in ((0.5, 0.85), (None, 0.5)):
        pool = Pool((), scores, scores, nearest=nearest)
        assert rank_pool(pool, k=2, alpha=None, fusion="theoretical_min").alpha == alpha
