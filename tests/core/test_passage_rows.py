"""Which passage is which: by id, or by content where one has no id."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from shared_core import Passage
from shared_core.index.passage_rows import PassageRows, check_distinct, content_of

NAMED = Passage("a", "relu", {"n": 1})
UNNAMED = Passage("", "conv", {"n": 2})
TWIN = Passage("", "relu", {"n": 1})
OTHER = Passage("b", "relu", {"n": 1})
STRANGE = Passage("", "relu", {"n": 2})


def rows_of(*passages: Passage) -> PassageRows:
    contents = [content_of(passage) for passage in passages]
    return PassageRows([*passages], contents, range(len(passages)))


@pytest.mark.parametrize(
    ("passage", "row"),
    [
        (NAMED, 0),
        (Passage("a", "changed"), 0),
        (TWIN, 0),
        (OTHER, None),
        (STRANGE, None),
        (UNNAMED, 1),
        (Passage("c", "conv", {"n": 2}), 1),
    ],
)
def test_the_same_is_what_has_the_id_or_else_the_content(passage: Passage, row: int | None) -> None:
    """Content tells nothing of two that each have an id."""
    assert rows_of(NAMED, UNNAMED).row_of(passage) == row


@pytest.mark.parametrize(
    ("passage", "key", "id_"),
    [
        (NAMED, "a", "a"),
        (TWIN, "a", "a"),
        (OTHER, "b", "b"),
        (STRANGE, content_of(STRANGE), ""),
        (UNNAMED, content_of(UNNAMED), ""),
        (Passage("c", "conv", {"n": 2}), content_of(UNNAMED), "c"),
    ],
)
def test_a_key_is_the_same_for_what_is_the_same(
    passage: Passage, key: str | bytes, id_: str
) -> None:
    """And the passage gets the id that is known here, if it has none."""
    known, named = rows_of(NAMED, UNNAMED).identified(passage)
    assert (known, named.id, named.text) == (key, id_, passage.text)


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        ({"n": 1, "none": None}, {"n": 1}),
        ({"n": 1}, {"n": 1, "none": None}),
        ({"n": 1}, {"n": 1.0}),
        ({"n": 2**70}, {"n": float(2**70)}),
        ({"on": date(2024, 2, 29)}, {"on": "2024-02-29"}),
        ({"at": datetime(2024, 2, 29, 12, tzinfo=UTC)}, {"at": "2024-02-29T12:00:00+00:00"}),
        ({"of": [UUID(int=1)]}, {"of": [str(UUID(int=1))]}),
        ({"n": 1, "in": {"b": 2, "a": 3}}, {"in": {"a": 3, "b": 2}, "n": 1}),
    ],
)
def test_it_is_the_same_as_a_store_returns_it(
    given: dict[str, Any], returned: dict[str, Any]
) -> None:
    """Chroma leaves out None, Qdrant has texts for dates, others no integers or no order."""
    assert rows_of(Passage("", "relu", given)).row_of(Passage("x", "relu", returned)) == 0


@pytest.mark.parametrize("other", [{"n": 2}, {"n": 1.5}, {"n": True}, {"n": "1"}, {"m": 1}, {}])
def test_other_metadata_make_it_another(other: dict[str, Any]) -> None:
    """Nan and infinite numbers are metadata like others."""
    rows = rows_of(*(Passage("", "relu", {"n": n}) for n in (1, math.nan, math.inf)))
    assert rows.row_of(Passage("x", "relu", other)) is None
    assert rows.row_of(Passage("x", "relu", {"n": math.inf})) == 2


def test_what_is_kept_of_a_content_is_short_whatever_its_characters() -> None:
    """Lone surrogates too, with metadata that JSON knows or does not."""
    text = "lone \ud800 surrogate " * 1000
    passages = [Passage("", text), Passage("", text, {1: text, "a": (0,)})]
    rows = rows_of(*passages)
    assert [len(content_of(passage)) for passage in passages] == [32, 32]
    assert [rows.row_of(passage) for passage in passages] == [0, 1]


def test_what_is_removed_is_not_found_and_the_others_stay() -> None:
    """Of two that are alike the other is."""
    rows = rows_of(NAMED, UNNAMED, OTHER)
    rows.remove([0])
    assert rows.get("a") is None
    assert [rows.row_of(passage) for passage in (NAMED, TWIN, UNNAMED, OTHER)] == [None, 2, 1, 2]
    rows.append([NAMED], [content_of(NAMED)])
    assert rows.get("a") == 3
    assert len(rows) == 4


def test_some_rows_may_be_kept() -> None:
    """By `only` under new numbers; by `first` under theirs, as they were before a change."""
    rows = rows_of(NAMED, UNNAMED, OTHER)
    rows.remove([1])
    rows.append([STRANGE], [content_of(STRANGE)])
    kept, before = rows.only([0, 2, 3]), rows.first(3, range(3))
    assert [kept.row_of(passage) for passage in (NAMED, UNNAMED, OTHER, STRANGE)] == [0, None, 1, 2]
    assert [before.row_of(passage) for passage in (NAMED, UNNAMED, OTHER, STRANGE)] == [
        *(0, 1, 2, None)
    ]
    later = Passage("", "pool")
    before.append([later], [content_of(later)])
    assert before.row_of(later) == 3
    assert before.row_of(STRANGE) is None
    before.remove([3])
    assert before.row_of(later) is None


def test_two_of_one_id_are_refused() -> None:
    """Not two without any."""
    check_distinct([NAMED, UNNAMED, UNNAMED, OTHER])
    with pytest.raises(ValueError, match="two documents have the id 'a'"):
        check_distinct([NAMED, UNNAMED, NAMED])
