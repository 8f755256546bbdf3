"""Placements by positional attention: bijections that follow the curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_core.arrays import Scores
from shared_core.placement.scored import (
    ATTENTION_PLACEMENTS,
    attention_placement,
    best_slot_first,
)

Case = tuple[list[int], Scores, list[int]]

cases = st.lists(st.integers(1, 5), max_size=9).flatmap(
    lambda lengths: st.tuples(
        st.permutations(range(len(lengths))),
        # few values: ties are frequent
        st.lists(
            st.sampled_from([0.0, 0.1, 0.2, 0.7]), min_size=sum(lengths), max_size=sum(lengths) + 3
        ).map(np.array),
        st.just(lengths),
    )
)


def algorithm_1(ranking: Sequence[int], s: Scores, t: Sequence[int]) -> list[int]:
    """Lines 3 to 13, line by line, in tenths: sums of integers have no rounding."""
    tenths = [round(10 * value) for value in s]
    left, right, l_idx, r_idx, r_u = 0, sum(t), 0, len(t) - 1, [0] * len(t)
    for i in ranking:
        left_scores = sum(tenths[left : left + t[i]])
        right_scores = sum(tenths[right - t[i] : right])
        if right_scores >= left_scores:
            r_u[r_idx] = i
            r_idx = r_idx - 1
            right = right - t[i]
        else:
            r_u[l_idx] = i
            l_idx = l_idx + 1
            left = left + t[i]
    return r_u


@given(cases)
def test_it_is_algorithm_1(case: Case) -> None:
    """Any ranking, lengths and scores; ties not lost to rounding."""
    assert list(attention_placement(*case)) == algorithm_1(*case)


@given(cases, st.sampled_from([*ATTENTION_PLACEMENTS]))
def test_every_one_is_a_bijection(case: Case, name: str) -> None:
    """No document lost, none twice; plain ints in a tuple; what is behind the region is nothing."""
    (ranking, scores, lengths), place = case, ATTENTION_PLACEMENTS[name]
    slots = place(ranking, scores, lengths)
    assert sorted(slots) == sorted(ranking)
    assert type(slots) is tuple
    assert {type(document) for document in slots} <= {int}
    assert slots == place(ranking, scores[: sum(lengths)], lengths)


def test_a_tie_goes_to_the_right() -> None:
    """On a flat curve every one of them: best last, next to the question."""
    assert best_slot_first([1, 0, 2], np.full(6, 0.1), [1, 2, 3]) == (2, 0, 1)


def test_a_symmetric_curve_ties_in_spite_of_rounding() -> None:
    """Added from left to right, 0.3 + 0.2 + 0.1 is more than 0.1 + 0.2 + 0.3 by one bit."""
    left, right = [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]
    for curve in (left + right, right + left):
        assert attention_placement([0, 1], np.array(curve), [3, 3]) == (1, 0)


def test_best_slot_first_takes_slots_by_their_mean() -> None:
    """Slots are those of the documents as they stand: means 0.5, 0.2 and 0.4 of lengths 1, 3, 2."""
    scores = np.array([0.5, 0.1, 0.2, 0.3, 0.5, 0.3])
    assert best_slot_first([2, 0, 1], scores, [1, 3, 2]) == (2, 1, 0)
    assert best_slot_first([1, 2, 0], scores, [1, 3, 2]) == (1, 0, 2)
