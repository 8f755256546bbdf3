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
    rank,
    resolve_placement,
)
from shared_core.neighbour_spans import Chunk, PassageNeighbours, Seed
from shared_core.placement import (
    Inverse,
    MaxRelevance,
    MinDistraction,
    Sequential,
    SourceOrder,
    UShape,
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


def test_the_names_are_those_of_the_contract() -> None:
    """A new one is entered here, too; three are RetriVex's, of orders that have another."""
    assert {*PLACEMENTS} == {
        *("sequential", "inverse", "shuffle", "u_shape", "max_relevance", "min_distraction"),
        *("source_order", "u_shape_best_last"),
        *("front_first", "back_first", "edge_balanced"),
    }
    others = {name: cls for name, cls in PLACEMENTS.items() if cls.name != name}
    assert others == {"front_first": Sequential, "back_first": Inverse, "edge_balanced": UShape}
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve_placement("u-shape"), "unknown placement 'u-shape'; known: sequential"),
        (lambda: resolve_placement(UShape), "unknown placement <class"),  # type: ignore[arg-type]
        (lambda: MaxRelevance()(3), "'max_relevance' is made from the accuracy .*psi="),
        (lambda: MinDistraction()(3), "'min_distraction' is made from the distracting .*psi="),
    ],
)
def test_bad_options_and_missing_profiles_are_refused(
    call: Callable[[], object], message: str
) -> None:
    """The message names the value, or what is missing and how to give it."""
    with pytest.raises(ValueError, match=message):
        call()


class Own(Placement):
    """Any order."""

    name = "own"
    made: Callable[[int], Sequence[int]] = staticmethod(range)

    def order(self, k: int, profile: PositionProfile | None) -> Sequence[int]:
        return self.made(k)


@pytest.mark.parametrize(
    "made", [lambda k: range(k - 1), lambda k: (0,) * k, lambda k: range(1, k + 1)]
)
def test_an_order_that_is_no_permutation_is_refused(
    made: Callable[[int], Sequence[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would drop passages or repeat them, and nobody would see it; by whatever way it comes."""
    assert resolve_placement(Own())(3) == (0, 1, 2)
    monkeypatch.setattr(Own, "made", staticmethod(lambda k: made(k) if k > 1 else range(k)))
    caus, spans = CAUS(placement=Own(), psi="always"), NeighbourSpans(order=Own())
    chunks = [Chunk(f"c{at}", "text", f"d{at}", 0) for at in range(3)]
    alone = PassageNeighbours([Passage(f"c{at}", "text") for at in range(3)], ChunkKeys())
    ways: list[Callable[[], object]] = [
        lambda: Own()(3),
        lambda: caus.decide(3),
        lambda: caus.place(rank([3.0, 2.0, 1.0], [1.0, 0.0, 0.0])),
        lambda: spans.expand([Seed(each, 1.0) for each in chunks], alone),
    ]
    for way in ways:
        with pytest.raises(ValueError, match=r"'own' must put each of 3 passages .*got \("):
            way()
