"""Placements: bijections all, by name, and clear about what they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import (
    CAUS,
    PLACEMENTS,
    ChunkKeys,
    NeighbourSpans,
    Passage,
    Placement,
    PositionProfile,
    resolve_placement,
    u_shape_order,
)
from shared_core.neighbour_spans import Chunk, PassageNeighbours, Seed
from shared_core.placement import MaxRelevance, MinDistraction, Shuffle, SourceOrder, UShape

PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.5, 0.4, 0.6, 0.8), distraction=(0.3, 0.1, 0.2, 0.5, 0.4)
)

profiles = st.integers(1, 12).flatmap(
    lambda k: st.builds(
        lambda accuracy, distraction: PositionProfile(
            model="m", accuracy=tuple(accuracy), distraction=tuple(distraction)
        ),
        *[st.lists(st.floats(0, 1), min_size=k, max_size=k)] * 2,
    )
)


@given(st.sampled_from([*PLACEMENTS]), st.integers(0, 200), profiles)
def test_every_placement_is_a_bijection(name: str, k: int, profile: PositionProfile) -> None:
    """No passage lost, none twice; plain ints in a tuple, the same at every call."""
    order = PLACEMENTS[name]()(k, profile)
    assert sorted(order) == list(range(k))
    assert type(order) is tuple
    assert {type(rank) for rank in order} <= {int}
    assert PLACEMENTS[name]()(k, profile) == order


@given(st.integers(1, 200), st.sampled_from(["start", "end"]))
def test_the_u_shape_puts_better_passages_nearer_to_an_edge(k: int, best_at: str) -> None:
    """Distance to the nearest edge never falls with the rank; the best is at the edge asked for."""
    order = UShape(best_at=best_at)(k)  # type: ignore[arg-type]
    distance = {rank: min(slot, k - 1 - slot) for slot, rank in enumerate(order)}
    assert [distance[rank] for rank in range(k)] == sorted(distance.values())
    assert order[0 if best_at == "start" else -1] == 0


@given(profiles, st.integers(1, 30))
def test_profile_placements_give_better_passages_better_slots(
    profile: PositionProfile, k: int
) -> None:
    """Accuracy never rises with the rank, the distracting effect never falls."""
    relevance, calm = MaxRelevance()(k, profile), MinDistraction()(k, profile)
    accurate = [profile.accuracy_at(k)[relevance.index(rank)] for rank in range(k)]
    distracting = [profile.distraction_at(k)[calm.index(rank)] for rank in range(k)]
    assert accurate == sorted(accurate, reverse=True)
    assert distracting == sorted(distracting)


def test_the_names_are_those_of_the_contract() -> None:
    """A new one is entered here, too; three are RetriVex's, of orders that have another."""
    assert {*PLACEMENTS} == {
        *("sequential", "inverse", "shuffle", "u_shape", "max_relevance", "min_distraction"),
        *("source_order",),
        *("front_first", "back_first", "edge_balanced"),
    }
    others = {name: cls.name for name, cls in PLACEMENTS.items() if cls.name != name}
    assert others == {
        "front_first": "sequential",
        "back_first": "inverse",
        "edge_balanced": "u_shape",
    }
    for name in PLACEMENTS:
        placement = resolve_placement(name)
        assert placement == PLACEMENTS[name]()
        assert resolve_placement(placement) is placement


def test_passages_of_a_document_are_read_in_its_order() -> None:
    """Documents by their best passage; those that are nobody's, and without a place, as ranked."""
    places = [("b", 7.0), ("a", 2.0), ("b", 3.0), ("alone", math.inf), ("a", 1.0)]
    assert SourceOrder().of_places(places)(5) == (2, 0, 4, 1, 3)
    unknown = [("b", math.inf), ("a", math.inf), ("b", math.inf)]
    assert SourceOrder().of_places(unknown)(3) == (0, 2, 1)
    assert SourceOrder()(4) == (0, 1, 2, 3)
    assert UShape().of_places(places) == UShape()


@pytest.mark.parametrize("spec", ["u-shape", "U_SHAPE", "", 3, None, UShape])
def test_an_unknown_placement_is_refused(spec: object) -> None:
    """The message names it and lists those there are."""
    with pytest.raises(
        ValueError, match=f"unknown placement .*known: {', '.join(PLACEMENTS)}, and"
    ):
        resolve_placement(spec)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: UShape()(-1), "k must be an integer >= 0, got -1"),
        (lambda: u_shape_order(-1), "k must be an integer >= 0, got -1"),
        (lambda: u_shape_order(3, best_at="middle"), "best_at must .* got 'middle'"),  # type: ignore[arg-type]
        (lambda: UShape(best_at="top"), "best_at must .* got 'top'"),  # type: ignore[arg-type]
        (lambda: Shuffle(seed=-1), "seed must be an integer >= 0, got -1"),
        (lambda: MaxRelevance()(3), "'max_relevance' is made from the accuracy .*psi="),
        (lambda: MinDistraction()(3), "'min_distraction' is made from the distracting .*psi="),
        (
            lambda: MinDistraction()(3, PositionProfile(model="m", accuracy=(0.5,))),
            "'min_distraction' is made from the distracting effect",
        ),
    ],
)
def test_bad_options_and_missing_profiles_are_refused(
    call: Callable[[], object], message: str
) -> None:
    """The message names the value, or what is missing and how to give it."""
    with pytest.raises(ValueError, match=message):
        call()


def test_a_placement_says_whether_it_needs_a_profile() -> None:
    """So that whatever has none to give can refuse it by name."""
    needing = {name for name in PLACEMENTS if PLACEMENTS[name].needs_profile}
    assert needing == {"max_relevance", "min_distraction"}
    for name in {*PLACEMENTS} - needing:
        assert PLACEMENTS[name]()(3) == PLACEMENTS[name]()(3, PROFILE)


class Own(Placement):
    """Any order."""

    name = "own"
    made: Callable[[int], Sequence[int]] = staticmethod(
        lambda k: [*range(1, k, 2), *range(0, k, 2)]
    )

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        return self.made(k)


def test_a_placement_of_ones_own_takes_part() -> None:
    """Subclass, name, order: the base class does the checking."""
    assert resolve_placement(Own()) == Own()
    assert Own()(5) == (1, 3, 0, 2, 4)
    with pytest.raises(ValueError, match="got -2"):
        Own()(-2)


@pytest.mark.parametrize(
    "made", [lambda k: range(k - 1), lambda k: (0,) * k, lambda k: range(1, k + 1)]
)
def test_an_order_that_is_no_permutation_is_refused(
    made: Callable[[int], Sequence[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would drop passages or repeat them, and nobody would see it; by whatever way it comes."""
    monkeypatch.setattr(Own, "made", staticmethod(lambda k: made(k) if k > 1 else range(k)))
    caus, spans = CAUS(placement=Own(), psi="always"), NeighbourSpans(order=Own())
    chunks = [Chunk(f"c{at}", "text", f"d{at}", 0) for at in range(3)]
    alone = PassageNeighbours.of([Passage(f"c{at}", "text") for at in range(3)], ChunkKeys())
    ways: list[Callable[[], object]] = [
        lambda: Own()(3),
        lambda: caus.decide(3),
        lambda: caus.place(caus.rank([3.0, 2.0, 1.0], [1.0, 0.0, 0.0])),
        lambda: spans.expand([Seed(each, 1.0) for each in chunks], alone),
    ]
    for way in ways:
        with pytest.raises(ValueError, match=r"'own' must put each of 3 passages .*got \("):
            way()


def test_placements_are_values() -> None:
    """Equal if their options are, usable as keys, and not changeable."""
    assert UShape() == UShape(best_at="start") != UShape(best_at="end")
    assert len({Shuffle(1), Shuffle(1), Shuffle(2)}) == 2
    with pytest.raises(AttributeError):
        Shuffle().seed = 3  # type: ignore[misc]
