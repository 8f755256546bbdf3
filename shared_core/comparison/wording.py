"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number and its noun, as ``1 question`` or ``1,200 questions``.

    Parameters
    ----------
    count
        The number.
    one, many
        The noun for one, and for any other number; by default `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
