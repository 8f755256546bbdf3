"""Whether several are given where several are wanted."""

from __future__ import annotations

SHOWN = 80
"""Characters of a value that a message shows at most."""


def check_several(value: object, name: str = "ids", one: type = str) -> None:
    """Raise ValueError if `value` is one instead of several.

    The letters of a text would pass for several texts, and may be ids of others.

    Parameters
    ----------
    value
        What was given.
    name
        What it is called.
    one
        The class of one of them. A text is refused whatever the class.
    """
    if not isinstance(value, str | one):
        return
    shown, kind = repr(value), "text " if isinstance(value, str) else ""
    if len(shown) > SHOWN:
        shown = f"{shown[:SHOWN]}..."
    raise ValueError(f"{name} must be several {name}, got the {kind}{shown}; give [{shown}]")
