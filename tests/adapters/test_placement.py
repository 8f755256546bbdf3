"""Ranked passages put into slots, by a step of its own, as the core puts them."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from shared_core import CAUS, PLACEMENTS, PositionProfile
from shared_core.placement import Shuffle, UShapeBestLast

from .drivers import PROFILE, Adapter, corpus, ids

CORPUS = corpus()


@pytest.mark.parametrize("k", [0, 1, 5, 12])
@pytest.mark.parametrize("placement", [*PLACEMENTS, UShapeBestLast(), Shuffle(5)], ids=repr)
def test_the_order_is_the_cores(adapter: Adapter, placement: Any, k: int) -> None:
    """With its reasons, by the sensitivity of the model; and what was given stays as it was."""
    given = adapter.items(CORPUS[:k])
    before = copy.deepcopy(given)
    for psi, rule in ((PROFILE, "gain"), (PROFILE, "psi"), (0.8, "psi"), ("never", "gain")):
        expected = CAUS(placement=placement, psi=psi, rule=rule).explain(k)
        placed = adapter.place(adapter.placer(placement, psi=psi, rule=rule), given)
        assert ids(placed) == [f"p{why['rank']}" for why in expected]
        assert [hit.why for hit in adapter.hits(placed)] == expected
    assert given == before


@pytest.mark.parametrize(("times", "opened"), [(1, False), (60, True)])
def test_the_length_of_the_passages_decides_too(adapter: Adapter, times: int, opened: bool) -> None:
    """As in a retriever: of a profile of two lengths, the longer one has a bias."""
    flat = PositionProfile(model="m", accuracy=(0.5, 0.5, 0.5), n=200, tokens=60)
    deep = PositionProfile(model="m", accuracy=(0.3, 0.3, 0.9), n=200, tokens=3000)
    psi = PositionProfile.of_lengths([flat, replace(deep, k=6, slots=(0, 2, 5))])
    passages = [replace(each, text="one word " * 10 * times) for each in CORPUS[:3]]
    step = adapter.placer("auto", psi=psi)
    placed = adapter.hits(adapter.place(step, adapter.items(passages)))
    assert [hit.why["gate"] for hit in placed] == ["open" if opened else "shut"] * 3


def test_naming_a_placement_is_asking_for_it(adapter: Adapter) -> None:
    """The step is told no sensitivity, and places."""
    items = adapter.items(CORPUS[:5])
    assert ids(adapter.place(adapter.placer("inverse"), items)) == ["p4", "p3", "p2", "p1", "p0"]
    assert ids(adapter.place(adapter.placer(), items)) == ["p0", "p2", "p4", "p3", "p1"]


def test_the_explanation_of_the_search_is_carried_on(adapter: Adapter) -> None:
    """Its scores and ranks by leg; of the slot, what is said is the last word."""
    ranked = adapter.retrieve(adapter.build(CORPUS, k=5, psi="never"), "padding stride")
    before = adapter.hits(ranked)
    after = adapter.hits(adapter.place(adapter.placer("inverse", psi=1.5), ranked))
    of_a_slot = CAUS(placement="inverse", psi=1.5).explain(5)
    for slot, hit in enumerate(after):
        found = before[4 - slot]
        assert (hit.id, hit.score) == (found.id, found.score)
        assert hit.why == {**found.why, **of_a_slot[slot]}
    assert adapter.hits(ranked) == before


def test_a_placement_that_is_named_to_a_retriever_without_psi_is_told_of_once(
    adapter: Adapter, recwarn: pytest.WarningsRecorder
) -> None:
    """It is not applied, where a step of that name would be."""
    adapter.retrieve(adapter.build(CORPUS, placement="inverse"), "padding stride")
    adapter.build(CORPUS, placement="inverse", psi=0.8)
    adapter.build(CORPUS, placement="sequential")
    adapter.placer("inverse")
    (one,) = [each for each in recwarn if "psi" in str(each.message)]
    assert "placement='inverse' is not applied without psi=" in str(one.message)


def test_the_order_that_comes_in_is_the_ranking(adapter: Adapter) -> None:
    """Also that of a reranker behind a step that has placed; placing twice is warned of."""
    retriever = adapter.build(CORPUS, k=5, placement="u_shape", psi="always")
    found = adapter.retrieve(retriever, "padding stride")
    reranked = [found[at] for at in (3, 0, 4, 1, 2)]
    assert ids(adapter.place(adapter.placer("inverse"), reranked)) == ids(reranked)[::-1]
    with pytest.warns(UserWarning, match="stand as 'u_shape' placed them.*place once"):
        placed = adapter.place(adapter.placer("inverse"), found)
    assert ids(placed) == ids(found)[::-1]
