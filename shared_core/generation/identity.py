"""What tells one model's answers from another's of the same name."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")


def identity_of(name: str, *description: str) -> str:
    """Return a name and a hash of what describes the model, without addresses in memory."""
    text = "\0".join(_ADDRESS.sub("", part) for part in description)
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def source_of(function: Callable[..., object]) -> str:
    """Return where a function comes from and, if it can be read, its source."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(function)
    return f"{module} {name} {source}"
