"""The query-adaptive weight of the dense leg."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import auto_alpha, fuse

NEITHER = math.e / (1 + math.e)
"""Weight where both legs stand out equally: odds of e."""

score = st.integers(-1000, 1000)
pools = st.lists(st.tuples(score, score), max_size=60).map(
    lambda pairs: np.array(pairs, float).reshape(-1, 2).T
)
"""Both legs' scores, shape (2, n)."""


@given(pools)
def test_it_lies_in_the_unit_interval(pool: np.ndarray) -> None:
    """For any scores, empty and equal ones included; a plain float."""
    alpha = auto_alpha(*pool)
    assert 0 <= alpha <= 1
    assert type(alpha) is float


@given(pools, st.sampled_from([0.25, 1.0, 8.0, 3.7]), st.integers(-500, 500))
def test_shifting_and_stretching_a_leg_changes_nothing(
    pool: np.ndarray, stretch: float, shift: int
) -> None:
    """Each leg by itself: the weight does not depend on a leg's scale."""
    dense, sparse = pool
    alpha = auto_alpha(dense, sparse)
    assert auto_alpha(stretch * dense + shift, sparse) == pytest.approx(alpha, abs=1e-9)
    assert auto_alpha(dense, stretch * sparse + shift) == pytest.approx(alpha, abs=1e-9)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1), st.randoms())
def test_the_order_of_the_passages_does_not_matter(
    pool: list[tuple[float, float]], random: object
) -> None:
    """A permutation of the pool gives the same weight."""
    shuffled = pool.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = np.array(pool).T, np.array(shuffled).T
    assert auto_alpha(*one) == pytest.approx(auto_alpha(*other), abs=1e-9)


def test_by_hand() -> None:
    """Dense 1 .9 .8 0: (1 - .675) / 1. Sparse 8 0 0 0: (8 - 2) / 8. Odds e * .325 to .75."""
    alpha = auto_alpha(np.array([1, 0.9, 0.8, 0]), np.array([8.0, 0, 0, 0]))
    odds = math.e * 0.325
    assert alpha == pytest.approx(odds / (odds + 0.75))


def test_twenty_of_a_larger_pool_are_compared_by_hand() -> None:
    """Dense 1, then nineteen of 0.5 among the 20 best: (1 - .525) / 1. Sparse as above, .75."""
    dense = np.array([1.0] + [0.5] * 19 + [0.0] * 30)
    sparse = np.array([8.0] * 5 + [0.0] * 45)
    odds = math.e * 0.475
    assert auto_alpha(dense, sparse) == pytest.approx(odds / (odds + 0.75))


def test_only_the_twenty_best_are_compared() -> None:
    """What lies below them moves the mean of none, only the spread."""
    best = np.linspace(1, 2, 20)
    one = np.concatenate([best, [0.0], np.full(30, 0.5)])
    other = np.concatenate([best, [0.0], np.full(300, 0.9)])
    sparse = np.linspace(0, 1, one.size)
    expected = (2 - best.mean()) / 2
    ours, theirs = auto_alpha(one, sparse), auto_alpha(other, np.linspace(0, 1, other.size))
    stands_out = (1 - sparse[-20:].mean()) / 1
    assert ours == pytest.approx(math.e * expected / (math.e * expected + stands_out))
    assert theirs > ours  # the sparse leg's twenty best lie closer together among 321


@pytest.mark.parametrize(
    "equal", [[], [3.0], [2.0, 2.0, 2.0], [1.0, 0.9999999, 1.0], [-1.0, -0.9999999]]
)
def test_a_leg_of_equal_scores_weighs_nothing(equal: list[float]) -> None:
    """It says nothing, so the other leg decides; where neither says anything, the prior."""
    telling, silent = np.array([1.0, 0.0, 0.2])[: len(equal)], np.array(equal)
    if len(equal) > 1:
        assert auto_alpha(telling, silent) == 1
        assert auto_alpha(silent, telling) == 0
    assert auto_alpha(silent, silent) == pytest.approx(NEITHER)


@pytest.mark.parametrize(
    ("dense", "sparse", "told"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0], r"the same passages, got shapes \(3,\) and \(2,\)"),
        ([1.0, math.nan], [1.0, 2.0], "dense scores must be finite, got nan"),
        ([1.0, 2.0], [1.0, math.inf], "sparse scores must be finite, got inf"),
        ([[1.0, 2.0]], [[1.0, 2.0]], r"dense scores must be one-dimensional, got shape \(1, 2\)"),
    ],
)
def test_what_is_no_pool_is_refused(dense: object, sparse: object, told: str) -> None:
    """A weight of it would look like any other."""
    with pytest.raises(ValueError, match=told):
        auto_alpha(dense, sparse)  # type: ignore[arg-type]


def test_legs_that_stand_out_equally_get_the_prior() -> None:
    """Odds of e for the dense leg."""
    scores = np.array([5.0, 1.0, 0.0])
    assert auto_alpha(scores, scores) == pytest.approx(NEITHER)


def test_the_leg_that_stands_out_more_weighs_more() -> None:
    """One clear hit against many near misses."""
    clear, vague = np.array([9.0, 1, 1, 1, 0]), np.array([9.0, 8.9, 8.8, 8.7, 0])
    assert auto_alpha(clear, vague) > NEITHER > auto_alpha(vague, clear)


def test_fusion_uses_and_reports_it() -> None:
    """`alpha="auto"` is this weight, and the result says which it was."""
    dense, sparse = np.array([0.9, 0.2, 0.1]), np.array([3.0, 9.0, 1.0])
    alpha = auto_alpha(dense, sparse)
    auto, fixed = fuse(dense, sparse, alpha="auto"), fuse(dense, sparse, alpha=alpha)
    assert auto.alpha == alpha
    assert auto.scores.tolist() == fixed.scores.tolist()
