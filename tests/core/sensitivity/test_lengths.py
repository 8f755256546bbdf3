"""A profile of several lengths, and the bands of a curve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shared_core import PositionProfile, decide_order
from shared_core.arrays import Scores
from shared_core.evaluation.intervals import mean_interval
from shared_core.placement import MaxRelevance
from shared_core.placement.order_gate import length_for
from shared_core.sensitivity.position_sensitivity import spread_slots


def profile(curve: list[float], *, noise: float = 0.0, n: int = 80) -> PositionProfile:
    """Return one whose questions differ a lot in how hard they are, and little by slot."""
    rng = np.random.default_rng(0)
    hard = rng.uniform(-0.3, 0.3, (n, 1))
    rows: Scores = np.clip(np.array(curve) + hard + rng.normal(0, noise, (n, len(curve))), 0, 1)
    return PositionProfile(
        model="m",
        accuracy=tuple(rows.mean(axis=0)),
        outcomes=tuple(map(tuple, rows)),
        n=n,
        tokens=100.0 * len(curve),
        window=4000,
    )


FLAT = profile([0.5, 0.5, 0.5], noise=0.05)
DEEP = profile([0.6, 0.4, 0.3, 0.4, 0.4, 0.3, 0.4, 0.4, 0.4, 0.7], noise=0.04)
BOTH = PositionProfile.of_lengths([DEEP, FLAT])


def test_several_lengths_are_one_profile(tmp_path: Path) -> None:
    """That of the most passages, which holds the others, also in its file."""
    assert (BOTH.k, [each.k for each in BOTH.by_length]) == (10, [3, 10])
    assert PositionProfile.load(BOTH.save(tmp_path / "both.json")) == BOTH
    assert PositionProfile.of_lengths([DEEP]) == DEEP
    longest = profile([0.5] * 20)
    joined = PositionProfile.of_lengths([BOTH, longest])
    assert joined == PositionProfile.of_lengths([FLAT, DEEP, longest])
    with pytest.raises(ValueError, match=r"different numbers of passages, got k=\[10, 10\]"):
        PositionProfile.of_lengths([DEEP, DEEP])
    with pytest.raises(ValueError, match=r"one model and measure .*'logprob'"):
        PositionProfile.of_lengths([DEEP, replace(FLAT, measure="logprob")])


def test_the_gate_takes_the_nearest_length() -> None:
    """Which a single profile would not know: at three passages this model reads all alike."""
    assert decide_order(BOTH, k=10).opened
    assert not decide_order(BOTH, k=3).opened
    assert decide_order(DEEP, k=5).opened
    assert "80 questions" in decide_order(BOTH, k=3).reason


def test_between_two_lengths_an_order_must_be_better_by_both() -> None:
    between = decide_order(BOTH, k=6)
    assert not between.opened
    assert "(measured with 3 passages, interpolated to 6)" in between.reason
    alike = PositionProfile.of_lengths([DEEP, profile([0.6, 0.3, 0.3, 0.3, 0.7], noise=0.02)])
    assert decide_order(alike, k=7).opened


def test_an_order_made_from_one_length_must_be_better_by_the_other_too() -> None:
    """And if it is, it is that one which is placed by."""
    short = profile([0.5, 0.55, 0.6, 0.9, 0.3], noise=0.02)
    opposed = PositionProfile.of_lengths([short, profile([0.5] * 8 + [0.2, 0.5, 0.9], noise=0.02)])
    gate = decide_order(opposed, "max_relevance", k=8)
    assert not gate.opened
    assert (gate.gain or 0) < 0
    rising = profile([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.8, 0.9, 0.95, 0.9], noise=0.02)
    both = PositionProfile.of_lengths([short, rising])
    gate = decide_order(both, "max_relevance", k=8)
    assert gate.opened
    assert gate.slots == MaxRelevance()(8, short) != MaxRelevance()(8, rising)
    assert length_for(both, MaxRelevance(), 8) == short
    twice = profile([0.3, 0.9, 0.3, 0.3, 0.88], noise=0.02)  # the longer has but one of its peaks
    late = profile([0.5, 0.4, 0.2, 0.2, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.9], noise=0.02)
    both = PositionProfile.of_lengths([twice, late])
    assert length_for(both, MaxRelevance(), 8) == late
    assert decide_order(both, "max_relevance", k=8).slots == MaxRelevance()(8, late)


def test_longer_passages_are_another_length() -> None:
    """Three passages of 330 tokens are as long as the ten that were measured."""
    assert BOTH.nearest(3, 1000) == (BOTH.by_length[1],)
    assert decide_order(BOTH, k=3, tokens=1000).opened
    assert decide_order(BOTH, k=10, tokens=1500).reason.endswith(
        "(measured with 10 passages and 1,000 tokens, interpolated to 10 and 1,500)"
    )
    beyond = decide_order(BOTH, k=10, tokens=2100).reason
    assert "(extrapolated from 1,000 tokens of passages to 2,100)" in beyond
    assert "interpolated" not in decide_order(BOTH, k=10, tokens=1050).reason  # as good as measured
    assert "interpolated to 21; extrapolated" not in decide_order(BOTH, k=20, tokens=1000).reason
    assert "says little of 21" in decide_order(BOTH, k=21, tokens=2100).reason


@pytest.mark.parametrize(("known", "asked"), [(1500, 2100), (2500, 3900)])
def test_beyond_half_of_the_window_a_longer_prompt_is_extrapolated(known: int, asked: int) -> None:
    """Also where what was measured lies beyond it; a shorter prompt is not."""
    measured = replace(DEEP, tokens=known)
    said = f"(extrapolated from {known:,} tokens of passages to {asked:,})"
    assert decide_order(measured, k=10, tokens=asked).reason.endswith(said)
    assert "interpolated" in decide_order(measured, k=10, tokens=0.85 * known).reason


def test_a_length_of_less_than_half_the_passages_says_nothing() -> None:
    """Though it is nearer by tokens, as where passages are shorter than those of the probe."""
    assert decide_order(BOTH, k=10, tokens=300).reason.endswith(
        "(measured with 10 passages and 1,000 tokens, interpolated to 10 and 300)"
    )
    assert decide_order(BOTH, k=7).opened
    assert "(measured with 3 passages" in decide_order(BOTH, k=6).reason


def test_a_reader_without_a_bias_is_left_alone_at_every_length() -> None:
    """False alarms over 200 seeds, at the lengths and between them."""
    opened, rng = [], np.random.default_rng(0)
    for _ in range(200):
        cells = []
        for k in (3, 5, 10):
            rows = (rng.random((60, k)) < rng.uniform(0.3, 0.9, (60, 1))).astype(float)
            means, outcomes = tuple(rows.mean(axis=0)), tuple(map(tuple, rows))
            cells.append(PositionProfile(model="m", accuracy=means, outcomes=outcomes, n=60))
        joined = PositionProfile.of_lengths(cells)
        opened += [decide_order(joined, k=k).opened for k in (3, 4, 5, 7, 10)]
    assert np.mean(opened) <= 0.05


def test_the_index_of_the_paper_takes_the_cautious_one() -> None:
    assert decide_order(BOTH, k=10, rule="psi").opened
    decided = decide_order(BOTH, k=6, rule="psi")
    assert decided.psi == min(each.psi for each in BOTH.by_length)


def test_bands_leave_out_how_much_questions_differ() -> None:
    """Which says nothing about slots: Wilson's interval is three times as wide here, and more."""
    assert DEEP.accuracy is not None
    lower, upper = DEEP.bands() or ()
    ours, wilson = upper - lower, np.subtract(*mean_interval(DEEP.accuracy, 80)[::-1])
    assert (wilson > 3 * ours).all()
    assert ((lower < DEEP.accuracy) & (upper > DEEP.accuracy)).all()


def test_a_band_holds_its_curve() -> None:
    """Also of a model that always reads the last slot, and never another."""
    accuracy = (0.0, 0.0, 1.0)
    always = PositionProfile(model="m", accuracy=accuracy, outcomes=(accuracy,) * 20, n=20)
    lower, upper = always.bands() or ()
    assert ((lower <= accuracy) & (upper >= accuracy)).all()


@pytest.mark.parametrize("k", [3, 4, 5, 10, 20, 50])
def test_spread_slots_hold_those_of_the_index(k: int) -> None:
    slots = spread_slots(k, 5)
    assert {0, (k - 1) // 2, k - 1} <= {*slots}
    assert len(slots) == min(k, 5)
