"""Metadata that are copied, so that nobody else's changes reach them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

IMMUTABLE = frozenset({str, int, float, bool, type(None)})
"""Types of values that need not be copied."""


def uncopied(metadata: Mapping[Any, Any], of: str) -> ValueError:
    """Return the error that names what cannot be copied in the metadata `of` something."""
    for key, value in metadata.items():
        try:
            deepcopy(value)
        except Exception as error:  # whatever a class of the user's raises
            return ValueError(
                f"metadata{of}: {key!r} holds a {type(value).__name__}, which cannot be copied "
                f"({error}): keep what names it in its place"
            )
    return ValueError(f"metadata{of} cannot be copied")
