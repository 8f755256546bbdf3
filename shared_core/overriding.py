"""Whether a subclass answers in a way of its own, which a shorter way of ours must not pass by."""

from __future__ import annotations

from inspect import getattr_static


def inherits(cls: type, base: type, *methods: str) -> bool:
    """Return whether a class has the methods of `base` as they are there."""
    # LlamaIndex's dispatcher wraps them in other objects each time they are read as attributes.
    return all(getattr_static(cls, name) is getattr_static(base, name) for name in methods)
