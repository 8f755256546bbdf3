"""Metadata filters: what they mean, that both legs obey them, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.index.metadata import predicate
from tests.core.making import found_ids

pytestmark = pytest.mark.usefixtures("either_way")

METADATA: list[dict[str, Any]] = [
    {"lang": "en", "year": 2020, "tags": ["a", "b"]},
    {"lang": "de", "year": 2021, "flag": True},
    {"lang": "en", "year": np.int64(2021), "flag": None},
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
        ({"lang": "en", "year": 2021}, "2"),
        ({"lang": {"de", "fr"}}, "1"),
        ({"year": range(2021, 2030)}, "12"),
        ({"tags": [["a", "b"]]}, "0"),
        ({"tags": [["b", "a"], ("a", "b")]}, ""),
        ({"flag": None}, "2"),
        ({"nowhere": "x"}, ""),
        (lambda metadata: metadata.get("year", 0) > 2020, "12"),
        ({"year": {"$gte": 2020, "$lt": 2020.5}, "lang": "en"}, "0"),
        ({"year": {"$gte": np.float32(2021)}}, "12"),
        ({"lang": {"$gt": 0}}, ""),
        ({"flag": {"$gt": 0}}, ""),
    ],
)
def test_what_filters_mean(index: HybridIndex, where: Any, ids: str) -> None:
    """Equal, any of, all keys together, a key that is absent, a function."""
    assert found(index, where) == {*ids}
    passes = predicate(where)
    assert {str(n) for n, metadata in enumerate(METADATA) if passes(metadata)} == {*ids}


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"year": {"$ne": 2020}}, r"'year': \{'\$ne': 2020\} is no range of numbers"),
        ({"lang": {"$in": ["en"]}}, "for any of several values give a list"),
        ({"year": {}}, "is no range of numbers"),
        ({"$and": [{"lang": "en"}]}, r"'\$and'.*name all keys in one mapping"),
        ({"lang": iter(["en"])}, "'lang': .* give a list"),
    ],
)
def test_filters_of_another_form_are_refused(index: HybridIndex, where: Any, message: str) -> None:
    """A ValueError that shows the filter, rather than an answer that ignores it."""
    for use in (predicate, lambda where: found(index, where)):
        with pytest.raises(ValueError, match=message):
            use(where)


def test_a_filter_function_sees_what_is_there_and_is_heard(index: HybridIndex) -> None:
    """Its error is no empty answer; the metadata of a deleted passage can break nothing."""

    def demanding(metadata: Mapping[str, Any]) -> bool:
        return bool(metadata["lang"] == "en")

    with pytest.raises(KeyError, match="lang"):
        found(index, demanding)
    index.delete(["3"])
    assert found(index, demanding) == {"0", "2"}


def test_a_search_under_way_is_filtered_by_what_was_there(index: HybridIndex) -> None:
    """Columns are read once for all snapshots; each looks at its own rows."""
    assert found(index, {"lang": "en"}) == {"0", "2"}
    before = index._state
    index.add([Passage("4", "word", {"lang": "en"}), Passage("0", "word", {})], np.eye(4)[:2])
    assert found(index, {"lang": "en"}) == {"2", "4"}
    allowed = before.allowed({"lang": "en"})
    assert allowed is not None
    assert allowed.tolist() == [True, False, True, False]
    assert before.allowed({}) is None
