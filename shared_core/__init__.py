"""The framework-free core of posrag: where retrieved passages go in a prompt."""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from shared_core.api import *  # noqa: F403

__version__ = "0.2.0"


def __getattr__(name: str) -> _typing.Any:
    """Import the public names once one is asked for: ``posrag --help`` needs none of them."""
    return getattr(_importlib.import_module("shared_core.api"), name)
