"""Copies of metadata."""

from __future__ import annotations

import threading

import pytest

from shared_core.metadata import copied


@pytest.mark.parametrize("metadata", [{}, {"a": 1, "b": None}, {"a": 1, 2: ["x", {"y": [True]}]}])
def test_a_copy_is_equal_and_apart(metadata: dict[object, object]) -> None:
    """Also where nothing in it can change."""
    copy, before = copied(metadata, lambda: "the owner"), repr(metadata)
    assert copy == metadata
    assert list(copy) == list(metadata)
    copy["new"] = 1
    if 2 in copy:
        copy[2][1]["y"].append(False)  # type: ignore[index]
    assert repr(metadata) == before


def test_what_has_no_copy_is_named() -> None:
    """With the first key that is at fault, not one that merely changes."""
    metadata = {"tags": ["x"], "guard": threading.Lock(), "other": threading.Lock()}
    with pytest.raises(ValueError, match="metadata of the owner: 'guard' holds a lock") as caught:
        copied(metadata, lambda: "the owner")
    assert isinstance(caught.value.__cause__, TypeError)
