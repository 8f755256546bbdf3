"""Placements by positional attention: bijections that follow the curve, and the curve itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.placement.attention import (
    ATTENTION_PLACEMENTS,
    PositionalCurve,
    attention_placement,
    direct_u,
    reversed_attention_placement,
)

Case = tuple[list[int], list[float], list[int]]

cases = st.lists(st.integers(1, 5), max_size=9).flatmap(
    lambda lengths: st.tuples(
        st.permutations(range(len(lengths))),
        # few values: ties are frequent
        st.lists(
            st.sampled_from([0.0, 0.1, 0.2, 0.7]), min_size=sum(lengths), max_size=sum(lengths) + 3
        ),
        st.just(lengths),
    )
)


def algorithm_1(ranking: Sequence[int], s: Sequence[float], t: Sequence[int]) -> list[int]:
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
    ranking, scores, lengths = case
    slots = ATTENTION_PLACEMENTS[name](ranking, scores, lengths)
    assert sorted(slots) == sorted(ranking)
    assert type(slots) is tuple
    assert {type(document) for document in slots} <= {int}
    assert slots == ATTENTION_PLACEMENTS[name](ranking, scores[: sum(lengths)], lengths)
    assert slots == ATTENTION_PLACEMENTS[name](
        np.array(ranking, int).tolist(), np.array(scores), tuple(np.array(lengths, np.int32))
    )


@given(cases)
def test_better_documents_stand_further_out(case: Case) -> None:
    """From either edge inwards relevance falls, whatever the curve."""
    ranking, scores, lengths = case
    rank = {document: at for at, document in enumerate(ranking)}
    ranks = [rank[document] for document in attention_placement(ranking, scores, lengths)]
    if ranks:
        worst = ranks.index(max(ranks))
        assert ranks[: worst + 1] == sorted(ranks[: worst + 1])
        assert ranks[worst:] == sorted(ranks[worst:], reverse=True)


@given(cases)
def test_reversed_places_the_worst_first(case: Case) -> None:
    """Table 3."""
    ranking, scores, lengths = case
    expected = algorithm_1(ranking[::-1], scores, lengths)
    assert list(reversed_attention_placement(ranking, scores, lengths)) == expected


def test_a_tie_goes_to_the_right() -> None:
    """On a flat curve every one of them: best last, next to the question."""
    assert attention_placement([1, 0, 2], [0.1] * 6, [1, 2, 3]) == (2, 0, 1)
    assert direct_u([1, 0, 2], [0.1] * 6, [1, 2, 3]) == (2, 0, 1)


def test_a_symmetric_curve_ties_in_spite_of_rounding() -> None:
    """Added from left to right, 0.3 + 0.2 + 0.1 is more than 0.1 + 0.2 + 0.3 by one bit."""
    left, right = [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]
    naive = [0.0 + 0.1 + 0.2 + 0.3, 0.0 + 0.3 + 0.2 + 0.1]
    assert naive[0] != naive[1]
    for curve in (left + right, right + left):
        assert attention_placement([0, 1], curve, [3, 3]) == (1, 0)


def test_the_length_of_the_document_decides_too() -> None:
    """The left end has the highest token, the right end more for a document of three tokens."""
    curve = [0.9, 0.1, 0.1, 0.1, 0.5, 0.5, 0.4]
    assert attention_placement([0, 1], curve, [1, 6]) == (0, 1)
    assert attention_placement([1, 0, 2], curve, [1, 3, 3])[-1] == 1


def test_direct_u_takes_slots_by_their_mean() -> None:
    """Slots are those of the documents as they stand: means 0.5, 0.2 and 0.4 of lengths 1, 3, 2."""
    scores = [0.5, 0.1, 0.2, 0.3, 0.5, 0.3]
    assert direct_u([2, 0, 1], scores, [1, 3, 2]) == (2, 1, 0)
    assert direct_u([1, 2, 0], scores, [1, 3, 2]) == (1, 0, 2)


def test_direct_u_can_zigzag_where_the_u_shape_does_not() -> None:
    """Appendix G: a bump in the middle is taken for what it is."""
    scores = [0.5, 0.1, 0.4, 0.2, 0.6]
    assert direct_u(range(5), scores, [1] * 5) == (1, 4, 2, 3, 0)
    assert attention_placement(range(5), scores, [1] * 5) == (1, 4, 3, 2, 0)


@pytest.mark.parametrize("name", ATTENTION_PLACEMENTS)
def test_nothing_and_one_are_placed(name: str) -> None:
    """A retriever may find as little."""
    assert ATTENTION_PLACEMENTS[name]([], [], []) == ()
    assert ATTENTION_PLACEMENTS[name]([0], [0.3], [1]) == (0,)


@pytest.mark.parametrize("name", ATTENTION_PLACEMENTS)
@pytest.mark.parametrize(
    ("ranking", "scores", "lengths", "message"),
    [
        ([0, 0], [1.0] * 2, [1, 1], r"a permutation of the 2 documents .*got \[0, 0\]"),
        ([0], [1.0] * 2, [1, 1], r"a permutation of the 2 .*got \[0\]"),
        ([1, 2], [1.0] * 2, [1, 1], r"a permutation of the 2 .*got \[1, 2\]"),
        ([0, -1], [1.0] * 2, [1, 1], r"a permutation of the 2 .*got \[0, -1\]"),
        ([1, 0], [1.0] * 2, [1, 0], "document 1 has length 0; a length is at least 1 token"),
        ([1, 0], [1.0] * 2, [-1, 1], "document 0 has length -1"),
        ([1, 0], [1.0] * 4, [2, 3], "4 token scores for documents of 5 tokens together"),
        ([0], [np.nan], [1], r"must be finite .*got \[nan\]"),
        ([0], [[1.0]], [1], r"of shape \(n,\), got \[\[1"),
    ],
)
def test_bad_input_is_refused(
    name: str, ranking: list[int], scores: list[float], lengths: list[int], message: str
) -> None:
    """By each of them, naming the value."""
    with pytest.raises(ValueError, match=message):
        ATTENTION_PLACEMENTS[name](ranking, scores, lengths)


def test_a_curve_is_the_mean_of_its_readings() -> None:
    """Each in multiples of its own mean: (2, 1, 0, 1) and (0, 1, 2, 1), the second ten times."""
    curve = PositionalCurve.from_readings([[4, 2, 0, 2], [0, 10, 20, 10]], model="m", points=4)
    assert curve == PositionalCurve(model="m", scores=(1.0, 1.0, 1.0, 1.0), n=2)
    one = PositionalCurve.from_readings([[4, 2, 0, 2]], model="m", points=4)
    assert one.scores == (2.0, 1.0, 0.0, 1.0)
    assert one.scores_for(4).tolist() == [2.0, 1.0, 0.0, 1.0]


def test_parts_of_a_curve_are_means_of_what_lies_in_them() -> None:
    """Three tokens in two parts: the middle one is half in each; and one token in three."""
    halves = PositionalCurve.from_readings([[1.0, 2.0, 3.0]], model="m", points=2)
    assert halves.scores == pytest.approx((2 / 3, 4 / 3))  # (1 + 2/2) / 1.5 and (2/2 + 3) / 1.5
    assert PositionalCurve.from_readings([[7.0]], model="m", points=3).scores == pytest.approx(
        (1.0, 1.0, 1.0)
    )


def test_a_curve_is_interpolated_between_the_middles_of_its_parts() -> None:
    """Two parts over four tokens: middles at 1/4 and 3/4, tokens at 1/8, 3/8, 5/8 and 7/8."""
    curve = PositionalCurve(model="m", scores=(1.0, 3.0), n=1)
    assert curve.scores_for(4).tolist() == [1.0, 1.5, 2.5, 3.0]
    assert curve.scores_for(1).tolist() == [2.0]
    assert curve.scores_for(0).tolist() == []


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=40), st.integers(1, 60), st.integers(1, 90)
)
def test_a_curve_keeps_the_mean_and_the_range(
    reading: list[float], points: int, tokens: int
) -> None:
    """Resampling invents no attention and loses none."""
    curve = PositionalCurve.from_readings([reading], model="m", points=points)
    assert np.mean(curve.scores) == pytest.approx(1)
    scores, mean = curve.scores_for(tokens), np.mean(reading)
    assert scores.shape == (tokens,)
    assert min(reading) / mean - 1e-9 <= scores.min() <= scores.max() <= max(reading) / mean + 1e-9


def test_a_curve_places_another_prompt_in_one_round() -> None:
    """Measured on prompts of 40 and 90 tokens, used on one of 24, by any ranking."""
    u = [(2 * (at + 0.5) / n - 1.2) ** 2 for n in (40, 90) for at in range(n)]
    curve = PositionalCurve.from_readings([u[:40], u[40:]], model="m")
    lengths = [6, 4, 8, 6]
    found = attention_placement([3, 0, 1, 2], curve.scores_for(sum(lengths)), lengths)
    truth = [(2 * (at + 0.5) / 24 - 1.2) ** 2 for at in range(24)]
    assert found == attention_placement([3, 0, 1, 2], truth, lengths) == (3, 1, 2, 0)


def test_a_curve_is_a_value() -> None:
    """It can be kept as plain numbers, and read back."""
    curve = PositionalCurve.from_readings([np.arange(1.0, 9.0)], model="m", points=5)
    assert {type(score) for score in curve.scores} == {float}
    assert PositionalCurve(**dataclasses.asdict(curve)) == curve
    assert len({curve, PositionalCurve(**dataclasses.asdict(curve))}) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PositionalCurve.from_readings([], model="m"), "no readings"),
        (lambda: PositionalCurve.from_readings([[1.0]], model="m", points=0), "points .*got 0"),
        (lambda: PositionalCurve.from_readings([[1.0], []], model="m"), "reading 1 has no att"),
        (lambda: PositionalCurve.from_readings([[0.0]], model="m"), "reading 0 has no attention"),
        (lambda: PositionalCurve.from_readings([[np.inf]], model="m"), "must be finite .*inf"),
        (lambda: PositionalCurve(model="m", scores=(), n=1), "curve of 'm' has no scores"),
        (lambda: PositionalCurve(model="m", scores=(1.0,), n=0), "n must be at least 1, got 0"),
        (lambda: PositionalCurve(model="m", scores=(1.0,), n=1).scores_for(-1), "got -1"),
    ],
)
def test_bad_curves_are_refused(call: Callable[[], object], message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ValueError, match=message):
        call()
