"""The order gate: which order a profile asks for, and whether it is sure of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shared_core import CAUS, NeighbourSpans, Passage, PositionProfile, UShapeBestLast, decide_order
from shared_core.placement.order_gate import HIT_RATES
from shared_core.types import Query
from tests.core.making import make_index

SLOPE = PositionProfile(model="m", accuracy=(0.5, 0.7, 0.9), n=300)


def measured(curve: list[float], n: int, seed: int, same: float = 0.5) -> PositionProfile:
    """Return a profile of questions, some of which are as hard in every slot."""
    rng = np.random.default_rng(seed)
    shape = (n, len(curve))
    hardness = np.where(rng.random(shape) < same, rng.random((n, 1)), rng.random(shape))
    outcomes = (hardness < np.array(curve)).astype(float)
    return PositionProfile(
        model="m",
        accuracy=tuple(outcomes.mean(axis=0).tolist()),
        outcomes=tuple(map(tuple, outcomes.tolist())),
        n=n,
    )


@pytest.mark.parametrize(
    ("accuracy", "slots", "placement"),
    [
        ((0.9, 0.8, 0.6, 0.5, 0.4), (0, 1, 2, 3, 4), "sequential"),
        ((0.4, 0.5, 0.6, 0.8, 0.9), (4, 3, 2, 1, 0), "inverse"),
        ((0.9, 0.4, 0.3, 0.4, 0.8), (0, 2, 4, 3, 1), "u_shape"),
        ((0.8, 0.4, 0.3, 0.4, 0.9), (1, 3, 4, 2, 0), "u_shape_best_last"),
        ((0.5, 0.5, 0.5, 0.5, 0.5), (0, 1, 2, 3, 4), "sequential"),
    ],
    ids=["front", "end", "edges", "edges, the last best", "none"],
)
def test_each_reader_gets_the_order_made_for_it(
    accuracy: tuple[float, ...], slots: tuple[int, ...], placement: str
) -> None:
    for profile in (
        PositionProfile(model="m", accuracy=accuracy, n=1000),
        measured([*accuracy], 400, 1),
    ):
        gate = decide_order(profile)
        assert (gate.placement, gate.slots) == (placement, slots)
        assert gate.opened is (placement != "sequential")


def test_a_slope_that_the_index_does_not_see() -> None:
    """(0.5, 0.7, 0.9): the index is 1.0, and best first is the worst order there is."""
    gate = decide_order(SLOPE)
    assert gate.slots == (2, 1, 0)
    gained = (HIT_RATES[0] - HIT_RATES[2]) * (0.9 - 0.5)
    assert gate.gain == pytest.approx(gained)
    assert gate.interval is not None
    assert gate.interval[0] < gained < gate.interval[1]
    assert f"+{100 * gained:.1f}" in gate.reason
    assert not decide_order(SLOPE, rule="psi").opened


@pytest.mark.parametrize(("placement", "k"), [("auto", 5), ("auto", 20), ("max_relevance", 5)])
def test_a_uniform_reader_is_left_alone(placement: str, k: int) -> None:
    """Of 400 profiles at most 5%, and what chance adds, open the gate.

    Judged by the questions that made it, an order made from a profile would open it in 11 to 30%.
    """
    opened = [decide_order(measured([0.6] * k, 100, seed), placement).opened for seed in range(400)]
    assert np.mean(opened) <= 0.05 + 2 * (0.05 * 0.95 / 400) ** 0.5


def test_a_named_placement_is_judged_by_its_own_gain() -> None:
    """And never replaced by another."""
    gate = decide_order(replace(SLOPE, accuracy=(0.9, 0.5, 0.4)), "inverse")
    assert (gate.opened, gate.placement) == (False, "sequential")
    assert gate.reason.startswith("inverse is not surely better than the ranked order: ")
    gate = decide_order(SLOPE, UShapeBestLast())
    assert (gate.opened, gate.slots) == (True, (1, 2, 0))
    assert gate.reason.startswith("u_shape_best_last should be better")
    assert decide_order(measured([0.3] * 4 + [0.9], 100, 0), "max_relevance").slots[-1] == 0


def test_what_ranks_hold_decides_with_it() -> None:
    """If all ranks are as likely to be needed, no order is better; the last rate goes on."""
    assert not decide_order(SLOPE, hit_rates=(0.3,)).opened
    gate = decide_order(SLOPE, hit_rates=(0.5, 0.1))
    assert gate.gain == pytest.approx((0.5 - 0.1) * (0.9 - 0.5))
    assert CAUS(psi=SLOPE, hit_rates=[0.3]).decide(3).slots == (0, 1, 2)


def test_far_from_what_was_measured_it_is_shut() -> None:
    """The curve is interpolated up to twice its passages."""
    assert decide_order(SLOPE, k=6).reason.endswith("(measured with 3 passages, interpolated to 6)")
    gate = decide_order(SLOPE, k=7)
    assert (gate.opened, gate.slots) == (False, tuple(range(7)))
    assert gate.reason == "the profile of m was measured with 3 passages, which says little of 7"


def test_slots_between_the_measured_ones_are_interpolated() -> None:
    """Three slots of 20 decide as the 20 interpolated ones do, taken as exact."""
    few = PositionProfile(model="m", k=20, slots=(0, 9, 19), accuracy=(0.5, 0.4, 0.9))
    every = PositionProfile(model="m", accuracy=tuple(few.accuracy_at(20)))
    (mine, whole) = (decide_order(profile, k=10) for profile in (few, every))
    assert mine.slots == whole.slots
    assert mine.gain == pytest.approx(whole.gain)
    assert "taken as exact" in mine.reason


def test_a_profile_of_distraction_alone_is_to_be_joined_to_one_of_accuracy() -> None:
    only = PositionProfile(model="m", distraction=(0.3, 0.2, 0.1), distraction_n=9)
    gate = decide_order(only, rule="psi")
    assert gate.reason.startswith("the profile of m holds no accuracy: join it to one")
    joined = replace(SLOPE, distraction=only.distraction, distraction_n=only.distraction_n)
    assert decide_order(joined, "min_distraction").opened


def test_few_questions_are_not_certain() -> None:
    """Two that agree are no proof, though they do not differ; of shares alone more are needed."""
    assert not decide_order(measured([0.0, 0.0, 1.0], 2, 0)).opened
    assert decide_order(measured([0.0, 0.0, 1.0], 30, 0)).opened
    known = measured([0.5, 0.55, 0.6], 100, 0, same=1.0)
    assert decide_order(known).opened
    assert not decide_order(replace(known, outcomes=None)).opened
    alone = decide_order(replace(SLOPE, n=1))
    assert (alone.opened, alone.interval) == (False, None)
    assert alone.reason.endswith(" points of accuracy by the profile of m (1 question)")


def test_a_span_counts_with_all_its_passages() -> None:
    """Two spans: the second holds ranks 1 and 2, which together are likelier than rank 0."""
    texts = ["alpha one", "beta two", "beta three"]
    places = [("a", 0), ("b", 0), ("b", 1)]
    passages = [
        Passage(text, text, {"doc_id": document, "chunk_id": at})
        for text, (document, at) in zip(texts, places, strict=True)
    ]
    index = make_index(0)
    index.add(passages, np.eye(3) + 0.1)
    ends = PositionProfile(model="m", accuracy=(0.3, 0.9))
    spans = NeighbourSpans(window=0)
    asked = [Query("alpha", [1.0, 0.5, 0.4])]
    for rates, documents in (((0.5, 0.3, 0.3), ["a", "b"]), ((0.7, 0.2, 0.2), ["b", "a"])):
        caus = CAUS(k=3, alpha=1.0, psi=ends, expand=spans, hit_rates=rates)
        (found,) = caus.search(index, asked)
        assert [span.chunks[0].document for span in found.spans] == documents
