"""Whether a subclass overrides methods, which a shortcut must then not bypass."""

from __future__ import annotations

from inspect import getattr_static


def inherits(cls: type, base: type, *methods: str) -> bool:
    """Return whether a class inherits these methods of `base` unchanged."""
    # LlamaIndex's dispatcher wraps them in other objects each time they are read as attributes.
    return all(getattr_static(cls, name) is getattr_static(base, name) for name in methods)
