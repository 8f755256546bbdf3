"""The CAUS object: options, the gate it holds, and what an arrangement says of itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from shared_core import (
    CAUS,
    NeighbourSpans,
    PositionProfile,
    ProfileNotFoundError,
    decide_order,
    rank,
)
from shared_core.index.engine import neighbours_in
from shared_core.placement import Shuffle, UShapeBestLast
from shared_core.types import Query

from .making import make_index, random_vectors

QUERY = Query("w1 w5", random_vectors(1, seed=99)[0])
PROFILE = PositionProfile(model="m", accuracy=(0.6, 0.5, 0.9), distraction=(0.3, 0.2, 0.1))
FLAT = PositionProfile(model="flat", accuracy=(0.5, 0.5, 0.5))


pytestmark = pytest.mark.usefixtures("profiles")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"fetch_k": 2.5}, "fetch_k must be an integer >= 1, got 2.5"),
        ({"placement": "v_shape"}, "unknown placement 'v_shape'; known: sequential"),
        ({"fusion": "max"}, "fusion must be 'theoretical_min', 'min_max' or 'rrf', got 'max'"),
        ({"distinct": 1.5}, r"distinct must be a number in \[0, 1\], or None, got 1.5"),
        ({"per_source": 0}, "per_source must be an integer >= 1, got 0"),
        ({"min_similarity": -2}, r"min_similarity must be a number in \[-1, 1\], or None, got -2"),
        ({"rule": "strong"}, "rule must be 'gain' or 'psi', got 'strong'"),
        ({"hit_rates": [0.5, 1.2]}, r"hit_rates must lie in \[0, 1\], got 1.2"),
        ({"psi": -0.1}, "psi must be finite and >= 0, got -0.1"),
        ({"psi": True}, "'always' or 'never', got True"),
        ({"expand": NeighbourSpans}, "expand must be NeighbourSpans or None, got <class"),
        ({"chunk_keys": {"a": 1}}, r"chunk_keys must be ChunkKeys, got \{'a': 1\}"),
        ({"psi": 1.3, "placement": "min_distraction"}, "'min_distraction' is made from .*psi="),
    ],
    ids=str,
)
def test_bad_options_are_refused_when_it_is_made(options: dict[str, Any], message: str) -> None:
    """Not at the first query; the message names option and value."""
    with pytest.raises(ValueError, match=message):
        CAUS(**options)


def test_what_does_not_exist_is_heard_of_when_it_is_made() -> None:
    """A misspelt option, or a profile."""
    with pytest.raises(TypeError, match="aplha"):
        CAUS(aplha=0.3)  # type: ignore[call-arg]
    with pytest.raises(ProfileNotFoundError, match="gpt-0"):
        CAUS(psi="gpt-0")


def test_a_placement_without_psi_is_warned_of_where_it_is_written() -> None:
    with pytest.warns(UserWarning, match="'inverse' is not applied without psi=") as told:
        CAUS(placement="inverse")
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("psi", "opened", "value", "reason"),
    [
        ("always", True, None, "psi='always'"),
        ("never", False, None, "psi='never'"),
        (None, False, None, "no position profile given"),
        (1, False, 1, "psi 1.000 does not exceed 1.0"),
        (1.0004, True, 1.0004, "psi 1.0004 exceeds 1.0"),
        (np.float32(2), True, 2, "psi 2.000 exceeds 1.0"),
        (PROFILE, True, 1.5, "u_shape_best_last should be better than the ranked order"),
        (FLAT, False, 1.0, "is not surely better than the ranked order"),
    ],
)
def test_what_the_gate_makes_of_psi(
    psi: Any, opened: bool, value: float | None, reason: str
) -> None:
    """The decision, the number it rests on, and a sentence; told alike wherever it is told."""
    caus = CAUS(k=3, psi=psi)
    assert caus.gate == decide_order(psi, k=3)
    assert caus.gate.opened is opened
    assert caus.gate.psi == (None if value is None else pytest.approx(value, rel=1e-6))
    assert reason in caus.gate.reason
    (arrangement,) = caus.search(make_index(40), [QUERY])
    told = caus.explain(3)
    assert json.loads(json.dumps(told)) == told
    for why, of_a_passage in zip(told, arrangement.explain(), strict=True):
        assert why["gate"] == ("open" if opened else "shut")
        assert why.items() <= of_a_passage.items()
        assert arrangement.gate.explain().items() <= why.items()


def test_a_profile_is_given_by_name_or_path() -> None:
    """The same decision and the same placement as by the profile itself."""
    path = PROFILE.save()
    by_value = CAUS(k=3, placement="max_relevance", psi=PROFILE)
    ranking = rank([3, 2, 1], [0, 0, 0])
    for psi in ("m", path, str(path)):
        caus = CAUS(k=3, placement="max_relevance", psi=psi)
        assert caus.gate == by_value.gate
        assert caus.place(ranking).slots == by_value.place(ranking).slots == (1, 2, 0)


def test_a_shut_gate_asks_for_no_profile() -> None:
    """Without reordering there is nothing to place by."""
    caus = CAUS(placement="max_relevance", psi="never")
    arrangement = caus.place(rank([1, 2], [0, 0]))
    assert (arrangement.placement, arrangement.slots) == ("sequential", (0, 1))


@pytest.mark.parametrize(
    ("options", "slots"),
    [
        ({"psi": "always"}, (0, 2, 4, 3, 1)),
        ({"psi": "always", "placement": UShapeBestLast()}, (1, 3, 4, 2, 0)),
        ({"psi": "always", "placement": "inverse"}, (4, 3, 2, 1, 0)),
        ({"psi": "always", "placement": Shuffle(3)}, Shuffle(3)(5)),
        ({}, (0, 1, 2, 3, 4)),
    ],
    ids=str,
)
def test_search_places_what_the_index_finds(options: Any, slots: tuple[int, ...]) -> None:
    """The ranking is the index's own; the gate decides on the slots."""
    index, where = make_index(30), {"lang": ["en", "de"]}
    caus = CAUS(k=5, alpha=0.4, fetch_k=7, fusion="rrf", **options)
    (arrangement,) = caus.search(index, [QUERY], where=where)
    ranking = index.search(
        QUERY.text,
        QUERY.vector,
        k=5,
        alpha=0.4,
        fetch_k=7,
        fusion="rrf",
        where=where,  # type: ignore[arg-type]
    )
    assert (arrangement.ranking, arrangement.slots) == (ranking, slots)
    assert len(arrangement) == 5
    assert arrangement.indices == [ranking.indices[rank] for rank in slots]
    assert arrangement.passages == [ranking.passages[rank] for rank in slots]
    assert arrangement.scores == [ranking.scores[rank] for rank in slots]


def test_options_of_one_call_stand_in_for_its_own() -> None:
    """k, fetch_k and alpha by query, to the greater depth; a bad one is refused as ever."""
    index, caus = make_index(30), CAUS(k=5, psi="always")
    (arrangement,) = caus.search(index, [QUERY], k=3, fetch_k=4, alpha=0.0)
    found = index.search(QUERY.text, QUERY.vector, k=3, fetch_k=4, alpha=0.0)  # type: ignore[arg-type]
    assert (arrangement.ranking, arrangement.slots) == (found, (0, 2, 1))
    assert len(caus.search(index, [QUERY], k=9, fetch_k=2)[0]) == 9
    for options in ({"k": 0}, {"fetch_k": 0}, {"alpha": 2.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            caus.search(index, [QUERY], **options)  # type: ignore[arg-type]


def test_every_passage_explains_its_slot() -> None:
    """Scores, parts, ranks, gate: JSON-able, by slot, and adding up."""
    (arrangement,) = CAUS(k=5, alpha=0.4, psi=1.3).search(make_index(40), [QUERY])
    explained = arrangement.explain()
    assert json.loads(json.dumps(explained)) == explained
    for slot, why in enumerate(explained):
        rank = arrangement.slots[slot]
        assert (why["slot"], why["rank"]) == (slot, rank)
        parts = 0.4 * why["dense_norm"] + 0.6 * why["sparse_norm"]
        assert why["score"] == pytest.approx(parts) == arrangement.scores[slot]
        assert why["dense"] == arrangement.ranking.dense[rank]
        assert why["sparse_rank"] == arrangement.ranking.sparse_rank[rank]
    expected = {"alpha": 0.4, "fusion": "theoretical_min", "placement": "u_shape", "psi": 1.3}
    assert expected.items() <= explained[0].items()


@pytest.mark.parametrize("psi", ["always", PROFILE, FLAT])
@pytest.mark.parametrize("k", [0, 1, 5])
def test_passages_without_scores_are_placed_by_the_same_rule(psi: Any, k: int) -> None:
    """And for the same reason."""
    caus = CAUS(k=5, psi=psi)
    ranking = rank(random_vectors(1, seed=1)[0][:k], random_vectors(1, seed=2)[0][:k])
    keys = ("rank", "slot", "placement", "psi", "gain", "gain_interval", "gate", "reason")
    expected = [{key: why[key] for key in keys} for why in caus.place(ranking).explain()]
    assert caus.explain(k) == expected


def test_only_a_ranking_with_passages_is_expanded() -> None:
    """What `rank` returns knows none: an empty prompt in their place would go unnoticed."""
    caus, plain = CAUS(expand=NeighbourSpans()), CAUS(psi="always")
    ranking = rank([0.2, 0.1], [1.0, 2.0])
    source = neighbours_in(make_index(2), caus.chunk_keys)
    with pytest.raises(ValueError, match="zip"):
        caus.place_expanded(ranking, source)
    assert len(caus.place_expanded(rank([], []), source)) == 0
    assert plain.place_expanded(ranking, source).explain() == plain.place(ranking).explain()


async def test_an_awaited_search_is_the_same_and_the_defaults_are_these() -> None:
    """What is not given is k = 10 of 50 passages a leg, by the theoretical minimum."""
    index = make_index(120)
    found = CAUS().search(index, [QUERY])
    assert await CAUS().asearch(index, [QUERY]) == found
    assert (
        CAUS(k=10, fetch_k=50, alpha=0.85, fusion="theoretical_min").search(index, [QUERY]) == found
    )
    assert CAUS().depth() == 50
