"""Placements: bijections all, by name, and clear about what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import PLACEMENTS, Placement, PositionProfile, resolve_placement, u_shape_order
from shared_core.placement import EdgeBalanced, MaxRelevance, MinDistraction, Shuffle, UShape

PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.5, 0.4, 0.6, 0.8), distraction=(0.3, 0.1, 0.2, 0.5, 0.4)
)

shares = st.integers(1, 12).flatmap(
    lambda k: st.tuples(*[st.lists(st.floats(0, 1), min_size=k, max_size=k)] * 2)
)


@pytest.mark.parametrize("k", range(13))
@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_placement_is_a_bijection(name: str, k: int) -> None:
    """No passage lost, none twice; plain ints in a tuple, the same at every call."""
    placement = PLACEMENTS[name]()
    order = placement(k, PROFILE)
    assert sorted(order) == list(range(k))
    assert type(order) is tuple
    assert {type(rank) for rank in order} <= {int}
    assert placement(k, PROFILE) == order


@given(st.sampled_from([*PLACEMENTS]), st.integers(0, 200), shares)
def test_every_placement_is_a_bijection_for_any_profile(
    name: str, k: int, profile: tuple[list[float], list[float]]
) -> None:
    """Probed at fewer slots than there are, or more."""
    accuracy, distraction = profile
    made = PositionProfile(model="m", accuracy=tuple(accuracy), distraction=tuple(distraction))
    assert sorted(PLACEMENTS[name]()(k, made)) == list(range(k))


@given(st.integers(0, 200), st.integers(0, 2**32), st.sampled_from(["start", "end"]))
def test_options_keep_placements_bijections(k: int, seed: int, best_at: str) -> None:
    """Any seed, either edge."""
    assert sorted(Shuffle(seed)(k)) == list(range(k))
    assert sorted(UShape(best_at=best_at)(k)) == list(range(k))  # type: ignore[arg-type]


@given(st.integers(1, 200), st.sampled_from(["start", "end"]))
def test_the_u_shape_puts_better_passages_nearer_to_an_edge(k: int, best_at: str) -> None:
    """Distance to the nearest edge never falls with the rank; the best is at the edge asked for."""
    order = u_shape_order(k, best_at=best_at)  # type: ignore[arg-type]
    distance = {rank: min(slot, k - 1 - slot) for slot, rank in enumerate(order)}
    assert [distance[rank] for rank in range(k)] == sorted(distance.values())
    assert order[0 if best_at == "start" else -1] == 0


@given(shares, st.integers(1, 30))
def test_profile_placements_give_better_passages_better_slots(
    profile: tuple[list[float], list[float]], k: int
) -> None:
    """Accuracy never rises with the rank, the distracting effect never falls."""
    accuracy, distraction = profile
    made = PositionProfile(model="m", accuracy=tuple(accuracy), distraction=tuple(distraction))
    relevance, calm = MaxRelevance()(k, made), MinDistraction()(k, made)
    accurate = [made.accuracy_at(k)[relevance.index(rank)] for rank in range(k)]
    distracting = [made.distraction_at(k)[calm.index(rank)] for rank in range(k)]
    assert accurate == sorted(accurate, reverse=True)
    assert distracting == sorted(distracting)


def test_the_names_are_those_of_the_contract() -> None:
    """A new one is entered here, too; each is found under its own name."""
    assert {*PLACEMENTS} == {
        *("sequential", "inverse", "shuffle", "u_shape", "max_relevance", "min_distraction"),
        *("front_first", "back_first", "edge_balanced"),
    }
    for name, cls in PLACEMENTS.items():
        assert cls.name == name
        assert cls.__doc__


@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_placement_is_found_by_name_or_is_one_already(name: str) -> None:
    """Equal by name; one that is given is given back."""
    placement = resolve_placement(name)
    assert placement == PLACEMENTS[name]()
    assert resolve_placement(placement) is placement


@pytest.mark.parametrize("spec", ["u-shape", "U_SHAPE", "", 3, None, UShape])
def test_an_unknown_placement_is_refused(spec: object) -> None:
    """The message names it and lists those there are."""
    with pytest.raises(
        ValueError, match=f"unknown placement .*known: {', '.join(PLACEMENTS)}, and"
    ):
        resolve_placement(spec)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_negative_k_is_refused(name: str) -> None:
    """By every placement, in the same words."""
    with pytest.raises(ValueError, match="k must be an integer >= 0, got -1"):
        PLACEMENTS[name]()(-1, PROFILE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
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


@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_placement_says_whether_it_needs_a_profile(name: str) -> None:
    """So that whatever has none to give can refuse it by name."""
    placement = PLACEMENTS[name]()
    if not placement.needs_profile:
        assert placement(3) == placement(3, PROFILE)
        return
    with pytest.raises(ValueError, match=f"'{name}' is made from"):
        placement(3)


def test_a_placement_of_ones_own_takes_part() -> None:
    """Subclass, name, order: the base class does the checking."""

    class Odd(Placement):
        name = "odd"

        def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
            return (*range(1, k, 2), *range(0, k, 2))

    assert resolve_placement(Odd()) == Odd()
    assert Odd()(5) == (1, 3, 0, 2, 4)
    with pytest.raises(ValueError, match="got -2"):
        Odd()(-2)


@pytest.mark.parametrize("name", ["edge_balanced", "front_first", "back_first"])
def test_a_name_for_one_order_takes_no_options(name: str) -> None:
    """It would be saved under a name that says otherwise."""
    with pytest.raises(TypeError):
        PLACEMENTS[name]("end")  # type: ignore[call-arg]
    assert asdict(PLACEMENTS[name]()) == {}


def test_placements_are_values() -> None:
    """Equal if their options are, usable as keys, and not changeable."""
    assert UShape() == UShape(best_at="start") != UShape(best_at="end")
    assert UShape() != EdgeBalanced()
    assert len({Shuffle(1), Shuffle(1), Shuffle(2)}) == 2
    with pytest.raises(AttributeError):
        Shuffle().seed = 3  # type: ignore[misc]
