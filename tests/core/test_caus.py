"""The CAUS object: options, the gate it holds, and what an arrangement says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shared_core import (
    CAUS,
    HybridIndex,
    NeighbourSpans,
    PositionProfile,
    ProfileNotFoundError,
    decide_order,
)
from shared_core.placement import Shuffle, UShape
from shared_core.sensitivity import Psi
from shared_core.types import Query

from .making import make_index, random_vectors

QUERY = random_vectors(1, seed=99)[0]
PROFILE = PositionProfile(model="m", accuracy=(0.6, 0.5, 0.9), distraction=(0.3, 0.2, 0.1))
FLAT = PositionProfile(model="flat", accuracy=(0.5, 0.5, 0.5))


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's own profiles out of the tests."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"k": -1}, "k must be an integer >= 1, got -1"),
        ({"k": 2.5}, "k must be an integer >= 1, got 2.5"),
        ({"k": "3"}, "k must be an integer >= 1, got '3'"),
        ({"k": True}, "k must be an integer >= 1, got True"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"alpha": 1.5}, r"alpha must be a number in \[0, 1\] or 'auto', got 1.5"),
        ({"alpha": -0.5}, "alpha must .* got -0.5"),
        ({"alpha": float("nan")}, "alpha must .* got nan"),
        ({"alpha": "automatic"}, "alpha must .* got 'automatic'"),
        ({"alpha": None}, "alpha must .* got None"),
        ({"fusion": "max"}, "fusion must be 'min_max' or 'rrf', got 'max'"),
        ({"placement": "v_shape"}, "unknown placement 'v_shape'; known: sequential"),
        ({"placement": None}, "unknown placement None"),
        ({"evidence": "strong"}, "evidence must be 'point' or 'interval', got 'strong'"),
        ({"psi": -0.1}, "psi must be finite and >= 0, got -0.1"),
        ({"psi": float("nan")}, "psi must be finite and >= 0, got nan"),
        ({"psi": True}, "'always' or 'never', got True"),
        ({"psi": [1]}, r"'always' or 'never', got \[1\]"),
        ({"alpha": True}, "got True"),
        ({"placement": ["u_shape"]}, r"unknown placement \['u_shape'\]"),
        ({"expand": "x"}, "expand must be NeighbourSpans or None, got 'x'"),
        ({"expand": NeighbourSpans}, "expand must be NeighbourSpans or None, got <class"),
        ({"chunk_keys": {"a": 1}}, r"chunk_keys must be ChunkKeys, got \{'a': 1\}"),
        ({"chunk_keys": None}, "chunk_keys must be ChunkKeys, got None"),
        ({"k": None}, "k must be an integer >= 1, got None"),
        ({"psi": float("inf")}, "psi must be finite and >= 0, got inf"),
        ({"psi": "always", "placement": "max_relevance"}, "'max_relevance' is made from .*psi="),
        ({"psi": 1.3, "placement": "min_distraction"}, "'min_distraction' is made from .*psi="),
    ],
)
def test_bad_options_are_refused_when_it_is_made(options: dict[str, object], message: str) -> None:
    """Not at the first query; the message names option and value."""
    with pytest.raises(ValueError, match=message):
        CAUS(**options)  # type: ignore[arg-type]


def test_an_unknown_option_is_refused() -> None:
    """A misspelt one does not pass in silence."""
    with pytest.raises(TypeError, match="aplha"):
        CAUS(aplha=0.3)  # type: ignore[call-arg]


def test_a_profile_that_is_not_there_is_heard_of_when_it_is_made() -> None:
    """Not at the first query."""
    with pytest.raises(ProfileNotFoundError, match="gpt-0"):
        CAUS(psi="gpt-0")


@pytest.mark.parametrize(
    ("psi", "opened", "value", "reason"),
    [
        ("always", True, None, "psi='always'"),
        ("never", False, None, "psi='never'"),
        (None, False, None, "no position profile given"),
        (1.3, True, 1.3, "psi 1.300 exceeds 1.0"),
        (1, False, 1, "psi 1.000 does not exceed 1.0"),
        (1.0004, True, 1.0004, "psi 1.0004 exceeds 1.0"),
        (0.99996, False, 0.99996, "psi 0.99996 does not exceed 1.0"),
        (1 + 2**-52, True, 1, "psi 1.0000000000000002 exceeds 1.0"),
        (2e7, True, 2e7, "psi above 1,000 exceeds 1.0"),
        (np.float32(2), True, 2, "psi 2.000 exceeds 1.0"),
        (PROFILE, True, 1.5, "psi 1.500 of m exceeds 1.0"),
        (FLAT, False, 1.0, "of flat does not exceed"),
    ],
)
def test_what_the_gate_makes_of_psi(
    psi: object, opened: bool, value: float | None, reason: str
) -> None:
    """The decision, the number it rests on, and a sentence."""
    gate = CAUS(psi=psi).gate  # type: ignore[arg-type]
    assert gate == decide_order(psi)  # type: ignore[arg-type]
    assert gate.opened is opened
    assert gate.psi == (None if value is None else pytest.approx(value, rel=1e-6))
    assert reason in gate.reason


def test_a_profile_is_given_by_name_or_path(tmp_path: Path) -> None:
    """The same decision and the same placement as by the profile itself."""
    path = PROFILE.save()
    by_value = CAUS(k=3, placement="max_relevance", psi=PROFILE)
    ranking = by_value.rank([3, 2, 1], [0, 0, 0])
    for psi in ("m", path, str(path)):
        caus = CAUS(k=3, placement="max_relevance", psi=psi)
        assert caus.gate == by_value.gate
        assert caus.place(ranking).slots == by_value.place(ranking).slots == (1, 2, 0)


def test_a_shut_gate_asks_for_no_profile() -> None:
    """Without reordering there is nothing to place by."""
    caus = CAUS(placement="max_relevance", psi="never")
    arrangement = caus.place(caus.rank([1, 2], [0, 0]))
    assert arrangement.placement == "sequential"
    assert arrangement.slots == (0, 1)


def test_the_legs_are_searched_to_the_greater_depth() -> None:
    """Of the options, or of what a call sets in their place."""
    caus = CAUS(k=10, fetch_k=20)
    assert [caus.depth(), caus.depth(30), caus.depth(k=5, fetch_k=2)] == [20, 30, 5]
    assert CAUS(k=10, fetch_k=2).depth() == 10
    with pytest.raises(ValueError, match="fetch_k must be an integer >= 1, got 0"):
        caus.depth(fetch_k=0)


@pytest.mark.parametrize(
    ("options", "slots"),
    [
        ({"psi": "always"}, (0, 2, 4, 3, 1)),
        ({"psi": "always", "placement": UShape(best_at="end")}, (1, 3, 4, 2, 0)),
        ({"psi": "always", "placement": "inverse"}, (4, 3, 2, 1, 0)),
        ({"psi": "always", "placement": Shuffle(3)}, Shuffle(3)(5)),
        ({"psi": "never"}, (0, 1, 2, 3, 4)),
        ({}, (0, 1, 2, 3, 4)),
    ],
)
def test_search_places_what_the_index_finds(
    options: dict[str, object], slots: tuple[int, ...]
) -> None:
    """The ranking is the index's own; the gate decides on the slots."""
    index = make_index(30)
    caus = CAUS(k=5, alpha=0.4, fetch_k=7, fusion="rrf", **options)  # type: ignore[arg-type]
    arrangement = caus.search(index, [Query("w1 w5", QUERY)], where={"lang": ["en", "de"]})[0]
    ranking = index.search(
        "w1 w5", QUERY, k=5, alpha=0.4, fetch_k=7, fusion="rrf", where={"lang": ["en", "de"]}
    )
    assert arrangement.ranking == ranking
    assert arrangement.slots == slots
    assert len(arrangement) == 5
    assert arrangement.indices == [ranking.indices[rank] for rank in slots]
    assert arrangement.passages == [ranking.passages[rank] for rank in slots]
    assert arrangement.scores == [ranking.scores[rank] for rank in slots]


def test_options_of_one_call_stand_in_for_its_own() -> None:
    """k, fetch_k and alpha by query; a bad one is refused as ever."""
    index, caus = make_index(30), CAUS(k=5, psi="always")
    arrangement = caus.search(index, [Query("w1 w5", QUERY)], k=3, fetch_k=4, alpha=0.9)[0]
    assert arrangement.ranking == index.search("w1 w5", QUERY, k=3, fetch_k=4, alpha=0.9)
    assert arrangement.slots == (0, 2, 1)
    assert caus.search(index, [Query("w1", QUERY)], alpha=0.0)[0].ranking.alpha == 0
    for options in ({"k": 0}, {"fetch_k": 0}, {"alpha": 2.0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            caus.search(index, [Query("w1", QUERY)], **options)  # type: ignore[arg-type]


def test_a_batch_is_what_single_searches_give() -> None:
    """Rankings and slots."""
    index, caus = make_index(100), CAUS(k=4, psi="always", alpha="auto")
    texts, vectors = ["w1", "", "w4 w5"], random_vectors(3, seed=3)
    together = caus.search(index, [*map(Query, texts, vectors)], where={"lang": "en"})
    assert together == [
        caus.search(index, [Query(text, vector)], where={"lang": "en"})[0]
        for text, vector in zip(texts, vectors, strict=True)
    ]


@pytest.mark.parametrize("psi", ["always", "never", None, 1.3, PROFILE])
def test_an_empty_index_gives_an_empty_arrangement(psi: object) -> None:
    """For every state of the gate."""
    arrangement = CAUS(psi=psi).search(HybridIndex(), [Query("x", [1.0])])[0]  # type: ignore[arg-type]
    assert len(arrangement) == 0
    assert arrangement.passages == arrangement.explain() == []


def test_every_passage_explains_its_slot() -> None:
    """Scores, parts, ranks, gate: JSON-able, by slot, and adding up."""
    index = make_index(40)
    arrangement = CAUS(k=5, alpha=0.4, psi=1.3).search(index, [Query("w1 w5", QUERY)])[0]
    explained = arrangement.explain()
    assert json.loads(json.dumps(explained)) == explained
    for slot, why in enumerate(explained):
        rank = arrangement.slots[slot]
        assert (why["slot"], why["rank"]) == (slot, rank)
        parts = 0.4 * why["dense_norm"] + 0.6 * why["sparse_norm"]
        assert why["score"] == pytest.approx(parts) == arrangement.scores[slot]
        assert why["dense"] == arrangement.ranking.dense[rank]
        assert why["sparse_rank"] == arrangement.ranking.sparse_rank[rank]
    assert {
        "alpha": 0.4,
        "fusion": "min_max",
        "placement": "u_shape",
        "psi": 1.3,
        "gate": "open",
        "reason": "psi 1.300 exceeds 1.0",
    }.items() <= explained[0].items()


@pytest.mark.parametrize(("psi", "state"), [(1.3, "open"), (0.7, "shut"), ("never", "shut")])
def test_a_decision_is_explained_as_in_what_explains_a_passage(psi: Psi, state: str) -> None:
    """The same three facts, of an arrangement and of slots without one."""
    caus = CAUS(k=3, psi=psi)
    arrangement = caus.search(make_index(40), [Query("w1 w5", QUERY)])[0]
    told = arrangement.gate.explain()
    assert told == {"psi": caus.gate.psi, "gate": state, "reason": caus.gate.reason}
    for why in (*arrangement.explain(), *caus.explain(3)):
        assert told.items() <= why.items()


def test_it_is_a_value() -> None:
    """Equal if its options are, and not changeable: safe to share between threads."""
    assert CAUS(k=3, psi=PROFILE) == CAUS(k=3, psi=PROFILE) != CAUS(k=4, psi=PROFILE)
    with pytest.raises(AttributeError):
        CAUS().k = 3  # type: ignore[misc]


@pytest.mark.parametrize("psi", ["always", "never", PROFILE, FLAT, None])
@pytest.mark.parametrize("k", [0, 1, 5])
def test_the_slots_of_any_passages_are_explained_as_those_of_a_ranking(psi: Psi, k: int) -> None:
    """What has no scores is placed by the same rule, for the same reason."""
    caus = CAUS(k=5, psi=psi)
    ranking = caus.rank(random_vectors(1, seed=1)[0][:k], random_vectors(1, seed=2)[0][:k])
    keys = ("rank", "slot", "placement", "psi", "gate", "reason")
    expected = [{key: why[key] for key in keys} for why in caus.place(ranking).explain()]
    assert caus.explain(k) == expected
    assert json.dumps(expected)


def test_a_ranking_without_its_passages_is_not_expanded_to_nothing() -> None:
    """What `rank` returns knows no passages; an empty prompt in its place would go unnoticed."""
    caus = CAUS(expand=NeighbourSpans())
    ranking = caus.rank([0.2, 0.1], [1.0, 2.0])
    source = make_index(2).neighbours(caus.chunk_keys)
    with pytest.raises(ValueError, match="the ranking has 2 entries and 0 passages"):
        caus.place_expanded(ranking, source)
    assert len(caus.place_expanded(caus.rank([], []), source)) == 0


def test_without_neighbours_a_ranking_is_placed_as_it_is() -> None:
    """It needs no passages then."""
    caus = CAUS(psi="always")
    ranking = caus.rank([0.2, 0.1, 0.3], [1.0, 2.0, 0.5])
    source = make_index(2).neighbours(caus.chunk_keys)
    assert caus.place_expanded(ranking, source).explain() == caus.place(ranking).explain()
