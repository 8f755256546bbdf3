"""Metadata filters: what they mean, that both legs obey them, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from copy import copy
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.index import dense
from shared_core.index.metadata import predicate

from .making import found_ids, make_index, random_vectors

pytestmark = pytest.mark.usefixtures("either_way")

QUERY = random_vectors(1, seed=99)[0]

EYES = np.eye(4)[:2]

METADATA: list[dict[str, Any]] = [
    {"lang": "en", "year": 2020, "tags": ["a", "b"]},
    {"lang": "de", "year": 2021},
    {"lang": "en", "year": 2021, "flag": None},
    {},
]


@pytest.fixture
def index() -> HybridIndex:
    index = HybridIndex()
    index.add([Passage(str(n), "word", m) for n, m in enumerate(METADATA)], np.eye(4))
    return index


def found(index: HybridIndex, where: Any) -> set[str]:
    return {*found_ids(index.search("word", [1.0, 1, 1, 1], where=where))}


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (None, "0123"),
        ({}, "0123"),
        ({"lang": "en"}, "02"),
        ({"lang": "en", "year": 2021}, "2"),
        ({"lang": ["en", "de"]}, "012"),
        ({"lang": ("de",)}, "1"),
        ({"lang": {"de", "fr"}}, "1"),
        ({"lang": frozenset({"fr"})}, ""),
        ({"lang": []}, ""),
        ({"year": np.array([2021, 2022])}, "12"),
        ({"year": range(2021, 2030)}, "12"),
        ({"lang": {"de": 0}.keys()}, "1"),
        ({"year": [2020, 2021], "lang": "de"}, "1"),
        ({"tags": [["a", "b"]]}, "0"),
        ({"tags": ["['a', 'b']"]}, ""),
        ({"flag": None}, "2"),
        ({"nowhere": "x"}, ""),
        (lambda metadata: metadata.get("year", 0) > 2020, "12"),
        (lambda metadata: "tags" in metadata, "0"),
    ],
)
def test_what_filters_mean(index: HybridIndex, where: Any, ids: str) -> None:
    """Equal, any of, all keys together, a key that is absent, a function."""
    assert found(index, where) == {*ids}
    passes = predicate(where)
    assert {str(n) for n, metadata in enumerate(METADATA) if passes(metadata)} == {*ids}


def cyclic(value: object) -> list[object]:
    cycle = [value]
    cycle.append(cycle)
    return cycle


EQUAL: list[tuple[Any, Any]] = [
    ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ([1, {"a": {2}}], [1.0, {"a": frozenset({2})}]),
    ({0, 8}, {8, 0}),
    ({0, 8}, frozenset({8, 0})),
    ((1, {2}), (1, frozenset({2}))),
    ((1, [2]), (True, [2])),
    (bytearray(b"a"), b"a"),
    (np.arange(2000), np.arange(2000)),
    (np.array(["a", None]), np.array(["a", None])),
    (np.array([["a"], None], object), np.array([["a"], None], object)),
    (cyclic("a"), cyclic("a")),
]

UNEQUAL: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, [("a", 1)]),
    ([1, 2], [2, 1]),
    ([1, 2], (1, 2)),
    ([[1]], ["[1]"]),
    ({1}, [1]),
    (np.arange(2000), np.arange(2000) % 1999),
    (np.zeros((1, 2)), np.zeros(2)),
    (np.array(["a", None]), np.array(["b", None])),
    (cyclic("a"), cyclic("b")),
]


@pytest.mark.parametrize(
    ("held", "wanted", "equal"),
    [(*pair, True) for pair in EQUAL] + [(*pair, False) for pair in UNEQUAL],
)
def test_values_without_a_hash_are_compared_too(held: object, wanted: object, equal: bool) -> None:
    """As a function that compares them would, both ways round."""
    for value, sought in ((held, wanted), (wanted, held)):
        index = HybridIndex()
        index.add([Passage("0", "word", {"key": value})], [[1.0]])
        where = {"key": [sought]}
        assert len(index.search("word", [1.0], where=where)) == equal
        assert predicate(where)({"key": value}) == equal


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("modulus", [2, 5, 97])
def test_a_filter_holds_in_both_legs(n: int, modulus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loose and strict, with few-row scans forced: only allowed ones, k of them."""
    monkeypatch.setattr(dense, "FEW", 4)
    index = make_index(n)
    allowed = {f"p{row}" for row in range(n) if row % modulus == 0}
    for alpha in (0.0, 0.5, 1.0):
        ids = found_ids(
            index.search(
                "w0 w1 w40", QUERY, k=8, alpha=alpha, where=lambda m: m["n"] % modulus == 0
            )
        )
        assert {*ids} <= allowed
        assert len(ids) == min(8, len(allowed))


def test_a_filter_acts_before_the_search_and_not_after() -> None:
    """The best allowed passage is found even where it is nobody's best."""
    index = make_index(300)
    last = index.search("w1 w2", QUERY, k=300).passages[-1]
    where = {"n": last.metadata["n"]}
    assert index.search("w1 w2", QUERY, k=3, fetch_k=3, where=where).passages == [last]


def test_filter_columns_follow_changes(index: HybridIndex) -> None:
    """A column is remembered for a snapshot, not for the index."""
    assert found(index, {"lang": "de"}) == {"1"}
    index.add([Passage("4", "word", {"lang": "de"})], [[1.0, 0, 0, 0]])
    assert found(index, {"lang": "de"}) == {"1", "4"}
    index.add([Passage("1", "word", {"lang": "fr"})], [[1.0, 0, 0, 0]])
    assert found(index, {"lang": "de"}) == {"4"}
    index.delete(["4"])
    assert found(index, {"lang": "de"}) == set()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": {"$gt": 2020}}, r"'year': \{'\$gt': 2020\} uses operators"),
        ({"$and": [{"lang": "en"}]}, r"'\$and'"),
        ("lang", "got 'lang'"),
        ([("lang", "en")], "got "),
        (7, "got 7"),
        ({7: "x"}, "filter 7: 'x' has a key that is not a string"),
        ({"lang": iter(["en"])}, "'lang': .* give a list"),
    ],
)
def test_filters_of_another_form_are_refused(index: HybridIndex, where: Any, message: str) -> None:
    """A ValueError that shows the filter, rather than an answer that ignores it."""
    with pytest.raises(ValueError, match=message):
        found(index, where)
    with pytest.raises(ValueError, match=message):
        predicate(where)


def test_a_filter_function_that_raises_is_heard(index: HybridIndex) -> None:
    """Its error is not swallowed into an empty answer."""

    def demanding(metadata: Mapping[str, Any]) -> bool:
        return bool(metadata["lang"] == "en")

    with pytest.raises(KeyError, match="lang"):
        found(index, demanding)


def test_a_filter_function_does_not_see_deleted_passages(index: HybridIndex) -> None:
    """What was deleted is gone: its metadata can break nothing."""
    index.delete(["3"])
    assert found(index, lambda metadata: metadata["lang"] == "en") == {"0", "2"}


def test_passages_that_come_later_are_filtered_too(index: HybridIndex) -> None:
    """New ones, one in another's place, and none that is gone; at each step as in a new index."""
    where = {"lang": "en"}
    assert found(index, where) == {"0", "2"}
    index.add([Passage("4", "word", {"lang": "en"}), Passage("0", "word", {"lang": "de"})], EYES)
    assert found(index, where) == {"2", "4"}
    assert found(index, {}) == {*"01234"}
    index.delete(["2"])
    assert found(index, where) == {"4"}
    assert found(index, {"lang": "de"}) == {"0", "1"}
    assert found(index, {}) == {*"0134"}
    assert found(copy(index), where) == found(pickle.loads(pickle.dumps(index)), where) == {"4"}


def test_an_earlier_state_is_filtered_by_its_own_passages(index: HybridIndex) -> None:
    """A search under way does not see those that came in the meantime."""
    before = index._state
    index.add([Passage("4", "word", {"lang": "en"}), Passage("0", "word", {})], EYES)
    assert found(index, {"lang": "en"}) == {"2", "4"}
    allowed = before.allowed({"lang": "en"})
    assert allowed is not None
    assert allowed.tolist() == [True, False, True, False]
    assert before.allowed({}) is None


def test_a_reading_that_is_interrupted_is_done_again(index: HybridIndex) -> None:
    """Nothing is missing then."""

    class Interrupting(dict[str, Any]):
        reads = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.reads += 1
            if self.reads == 1:
                raise KeyboardInterrupt
            return super().get(key, default)

    index.add([Passage("4", "word", Interrupting(lang="en")), Passage("5", "word", {})], EYES)
    with pytest.raises(KeyboardInterrupt):
        found(index, {"lang": "en"})
    assert found(index, {"lang": "en"}) == {"0", "2", "4"}
