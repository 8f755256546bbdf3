"""Copies of metadata."""

from __future__ import annotations

import threading

import pytest

from shared_core.metadata import copied


def test_what_has_no_copy_is_named() -> None:
    """With the first key that is at fault, not one that merely changes."""
    metadata = {"tags": ["x"], "guard": threading.Lock(), "other": threading.Lock()}
    with pytest.raises(ValueError, match="metadata of the owner: 'guard' holds a lock"):
        copied(metadata, lambda: "the owner")
