"""Which packages a command needs, all checked before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from shared_core.errors import MissingExtraError

TABLES = {"rich": "eval"}
FIGURES = {"matplotlib": "eval"}
MEASURES = {"ir_measures": "eval"}
REPORT = {"jinja2": "eval"}
TORCH = {"torch": "models"}
LOCAL_MODEL = {**TORCH, "transformers": "models"}
EMBEDDING = {**LOCAL_MODEL, "sentence_transformers": "models"}
GGUF = {"gguf": "gguf", "accelerate": "gguf"}
OPENAI = {"langchain_core": "openai", "langchain_openai": "openai"}
"""Top-level module -> the extra of ``posrag`` that installs it."""


def check_installed(extras: Mapping[str, str], *, install: str = "") -> None:
    """Check that modules can be imported; none is.

    Parameters
    ----------
    extras
        Top-level module -> extra that installs it.
    install
        The extra to name in the message, instead of those of the missing modules.

    Raises
    ------
    MissingExtraError
        If a module is not installed. The message names every one of them, and one pip command.
    """
    missing = [module for module in extras if find_spec(module) is None]
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        chosen = install or ",".join(dict.fromkeys(extras[module] for module in missing))
        raise MissingExtraError(f"{names} not installed; run: pip install 'posrag[{chosen}]'")
