"""Whether a subclass answers in a way of its own, which a shorter way of ours must not pass by."""

from __future__ import annotations


def inherits(cls: type, base: type, *methods: str) -> bool:
    """Return whether a class has the methods of `base` as they are there."""
    return all(getattr(cls, name) is getattr(base, name) for name in methods)
