"""Versions of the software behind a measurement."""

from __future__ import annotations

import datetime
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

_DISTRIBUTIONS = {
    "numpy": "numpy",
    "torch": "torch",
    "transformers": "transformers",
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "openai": "openai",
}


def timestamp() -> str:
    """Return the time now in UTC, to the second (ISO 8601)."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of what is loaded and matters."""
    found = {"python": platform.python_version()}
    loaded = [name for module, name in _DISTRIBUTIONS.items() if module in sys.modules]
    for distribution in ("posrag", *loaded):
        try:
            found[distribution] = version(distribution)
        except PackageNotFoundError:  # run from a source tree, or vendored
            continue
    return found
