"""Fusion of two legs: by score, by rank, with scores that are missing or odd."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import fuse, min_max, rank

pytestmark = pytest.mark.usefixtures("either_way")

NAN, INF = math.nan, math.inf

scores = st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, NAN])
pools = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(scores, min_size=n, max_size=n)] * 2)
)
alphas = st.floats(0, 1) | st.just("auto")
fusions = st.sampled_from(["min_max", "rrf"])


@given(pools, alphas, fusions)
def test_fused_scores_lie_in_the_unit_interval(
    pool: tuple[list[float], list[float]], alpha: object, fusion: str
) -> None:
    """Whatever the legs' scales, ties and gaps; the parts do too, and the order is by score."""
    fused = fuse(*pool, alpha=alpha, fusion=fusion)  # type: ignore[arg-type]
    for part in (fused.scores, fused.dense_norm, fused.sparse_norm):
        assert ((part >= 0) & (part <= 1)).all()
    assert sorted(fused.order.tolist()) == [*range(len(pool[0]))]
    assert (np.diff(fused.scores[fused.order]) <= 0).all()
    assert 0 <= fused.alpha <= 1


@given(pools, st.floats(0, 1), fusions)
def test_fused_is_the_weighted_sum_of_its_parts(
    pool: tuple[list[float], list[float]], alpha: float, fusion: str
) -> None:
    """So an explanation adds up."""
    fused = fuse(*pool, alpha=alpha, fusion=fusion)  # type: ignore[arg-type]
    total = alpha * fused.dense_norm + (1 - alpha) * fused.sparse_norm
    np.testing.assert_allclose(fused.scores, total, atol=1e-12)


@given(pools, st.integers(1, 35), alphas, fusions)
def test_rank_keeps_the_head_of_the_fused_order(
    pool: tuple[list[float], list[float]], k: int, alpha: object, fusion: str
) -> None:
    """Every list of the ranking runs over the same passages."""
    fused = fuse(*pool, alpha=alpha, fusion=fusion)  # type: ignore[arg-type]
    ranking = rank(*pool, k=k, alpha=alpha, fusion=fusion)  # type: ignore[arg-type]
    best = fused.order[:k]
    assert ranking.indices == best.tolist()
    assert len(ranking) == min(k, len(pool[0]))
    for name in ("scores", "dense", "sparse", "dense_norm", "sparse_norm", "dense_rank"):
        assert getattr(ranking, name) == getattr(fused, name)[best].tolist()
    assert (ranking.alpha, ranking.fusion) == (fused.alpha, fusion)


def test_a_missing_score_stands_at_its_legs_floor() -> None:
    """NaN counts as the lowest that the leg gave: normalised it is 0."""
    fused = fuse([0.9, NAN, 0.5], [NAN, NAN, 3.0])
    assert fused.dense.tolist() == [0.9, 0.5, 0.5]
    assert fused.sparse.tolist() == [3, 3, 3]
    assert fused.dense_norm[1] == 0
    assert rank([0.9, None, 0.5], [0, 0, 0]).dense == [0.9, 0.5, 0.5]  # type: ignore[list-item]


def test_a_leg_without_any_score_contributes_nothing() -> None:
    """All NaN is a leg that did not run."""
    fused = fuse([NAN, NAN], [1.0, 2.0])
    assert fused.dense_norm.tolist() == [0, 0]
    assert fused.order.tolist() == [1, 0]


def test_the_callers_arrays_are_left_alone() -> None:
    """Also where a missing score is filled in."""
    dense, sparse = np.array([NAN, 1.0]), np.array([2.0, NAN])
    fused = fuse(dense, sparse)
    assert math.isnan(dense[0])
    assert math.isnan(sparse[1])
    assert not np.shares_memory(fused.dense, dense)


@pytest.mark.parametrize(
    ("dense", "sparse", "message"),
    [
        ([1.0, INF], [1.0, 2.0], "dense scores must be finite, got inf"),
        ([-1e308, 1e308], [1.0, 2.0], r"too far apart: -1e\+308 to 1e\+308"),
        ([-1e308, 1e308, NAN], [1.0, 2.0, 3.0], r"too far apart: -1e\+308 to 1e\+308"),
        ([1.0, 2.0], [-INF, 2.0], "sparse scores must be finite, got -inf"),
        ([1.0], [1.0, 2.0], r"shapes \(1,\) and \(2,\)"),
        ([[1.0]], [1.0], r"dense scores must be one-dimensional, got shape \(1, 1\)"),
        (1.0, [1.0], r"dense scores must be one-dimensional, got shape \(\)"),
    ],
)
def test_scores_that_cannot_be_fused_are_refused(
    dense: object, sparse: object, message: str
) -> None:
    """The message names the leg and the value."""
    with pytest.raises(ValueError, match=message):
        fuse(dense, sparse)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "alpha", [-0.01, 1.01, NAN, INF, "AUTO", "0.3", None, [0.3], 0.3j, np.complex128(0.3), np.True_]
)
def test_an_alpha_out_of_range_is_refused(alpha: object) -> None:
    """A ValueError that names it, whatever its type."""
    with pytest.raises(ValueError, match="alpha must"):
        fuse([1.0], [1.0], alpha=alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize("fusion", ["sum", "", None])
def test_an_unknown_fusion_is_refused(fusion: object) -> None:
    """The message names it and those that exist."""
    with pytest.raises(ValueError, match=f"'min_max' or 'rrf', got {fusion!r}"):
        fuse([1.0], [1.0], fusion=fusion)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"'min_max' or 'rrf', got {fusion!r}"):
        rank([1.0], [1.0], fusion=fusion)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [0, -1, 1.0, True, "3", None])
def test_rank_refuses_a_k_below_one(k: object) -> None:
    """The message names it."""
    with pytest.raises(ValueError, match=f"k must be an integer >= 1, got {k!r}"):
        rank([1.0], [1.0], k=k)  # type: ignore[arg-type]


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("alpha", [0.3, "auto"])
def test_no_candidates_give_an_empty_ranking(fusion: str, alpha: object) -> None:
    """An empty pool is not an error."""
    ranking = rank([], [], alpha=alpha, fusion=fusion)  # type: ignore[arg-type]
    assert len(ranking) == 0
    assert ranking.scores == []


def test_a_single_candidate_scores_zero() -> None:
    """A pool of one spans nothing: both legs contribute 0."""
    assert rank([0.9], [7.0]).scores == [0.0]


def test_reciprocal_rank_fusion_by_hand() -> None:
    """61 / (61 + rank) for each leg, weighted; the sparse leg does not rank its lowest."""
    fused = fuse([0.9, 0.8, 0.1], [0.0, 9.0, 3.0], alpha=0.5, fusion="rrf")
    assert fused.dense_norm.tolist() == pytest.approx([1, 61 / 62, 61 / 63])
    assert fused.sparse_norm.tolist() == pytest.approx([0, 1, 61 / 62])
    assert fused.scores.tolist() == pytest.approx([0.5, (61 / 62 + 1) / 2, (61 / 63 + 61 / 62) / 2])
    assert fused.order.tolist() == [1, 2, 0]


def test_reciprocal_rank_fusion_sees_ranks_only() -> None:
    """Any rising function of a leg's scores gives the same."""
    one = fuse([3.0, 2.0, 1.0, 0.5], [1.0, 4.0, 2.0, 0.0], fusion="rrf")
    other = fuse(np.exp([3.0, 2.0, 1.0, 0.5]), [10.0, 4000.0, 20.0, -1.0], fusion="rrf")
    assert one.scores.tolist() == other.scores.tolist()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30))
def test_min_max_maps_the_extremes_and_keeps_the_order(values: list[float]) -> None:
    """Lowest to 0, highest to (nearly) 1; all equal to 0."""
    array = np.array(values)
    scaled = min_max(array)
    assert scaled.min() == 0
    assert scaled.max() <= 1
    assert (np.diff(scaled[array.argsort(kind="stable")]) >= 0).all()
    if np.ptp(array) > 1:
        assert scaled.max() > 0.999_999
    if np.ptp(array) == 0:
        assert not scaled.any()


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([1.0, math.nan], "scores must be finite, got nan"),
        ([1.0, -INF], "scores must be finite, got -inf"),
        ([[1.0, 2.0]], r"scores must be one-dimensional, got shape \(1, 2\)"),
        ([-1.7e308, 1.7e308], "scores lie too far apart"),
    ],
)
def test_min_max_refuses_what_has_no_extremes(scores: object, told: str) -> None:
    """One NaN would make all of it NaN."""
    with pytest.raises(ValueError, match=told):
        min_max(scores)  # type: ignore[arg-type]


def test_min_max_reaches_one_only_in_rounding() -> None:
    """Where epsilon is lost; and no scores stay none."""
    assert min_max([0.0, 1.0]).max() < 1
    assert min_max([0.0, 1e10]).max() == 1
    assert min_max([]).shape == (0,)


@given(
    st.lists(st.integers(-100, 100), min_size=1, max_size=20),
    st.integers(1, 1000),
    st.integers(-10_000, 10_000),
)
def test_the_order_does_not_see_a_legs_scale(values: list[int], stretch: int, shift: int) -> None:
    """A leg may score in cosines or in hundreds; epsilon alone makes a difference below 1e-6."""
    dense, sparse = np.array(values, float), np.arange(len(values), dtype=float)
    one, other = fuse(dense, sparse), fuse(stretch * dense + shift, sparse)
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
