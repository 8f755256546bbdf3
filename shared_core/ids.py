"""The ids that callers give."""

from __future__ import annotations


def check_several(ids: object) -> None:
    """Raise ValueError if one text is given for several ids: its letters may be ids of others."""
    if isinstance(ids, str):
        raise ValueError(f"ids must be several ids, got the text {ids!r}; give [{ids!r}]")
