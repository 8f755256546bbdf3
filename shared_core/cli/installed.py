"""Which packages belong to which extra, and whether those that a command needs are there."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from shared_core.errors import MissingExtraError

LOCAL_MODEL = ("torch", "transformers")
EMBEDDING = (*LOCAL_MODEL, "sentence_transformers")

EXTRAS = {
    "langchain": (("langchain_core",), "LangChain"),
    "llamaindex": (("llama_index",), "LlamaIndex"),
    "models": (EMBEDDING, "local models and embeddings; demo, attention"),
    "gguf": (("gguf", "accelerate"), "local models in GGUF files"),
    "openai": (("langchain_openai",), "openai:NAME endpoints"),
    "eval": (
        ("rich", "matplotlib", "ir_measures", "jinja2", "pydantic"),
        "the commands, their reports and figures",
    ),
    "postgres": (("psycopg",), "passages in PostgreSQL"),
    "qdrant": (("qdrant_client",), "passages in Qdrant"),
    "lancedb": (("lancedb",), "passages in LanceDB"),
    "milvus": (("pymilvus",), "passages in Milvus"),
}
"""Extra -> the modules it brings, and what they enable."""

_EXTRA_OF = {module: extra for extra, (modules, _) in EXTRAS.items() for module in modules}


def missing_of(modules: Iterable[str]) -> list[str]:
    """Return the modules that cannot be imported; none is."""
    return [module for module in dict.fromkeys(modules) if find_spec(module) is None]


def check_installed(*modules: str, install: str = "") -> None:
    """Check that modules can be imported.

    Parameters
    ----------
    modules
        Top-level modules of `EXTRAS`.
    install
        The extra to name in the message, instead of those of the missing modules.

    Raises
    ------
    MissingExtraError
        If a module is not installed. The message names every one of them, and one pip command.
    """
    missing = missing_of(modules)
    if missing:
        *others, last = missing
        names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        chosen = install or ",".join(dict.fromkeys(_EXTRA_OF[module] for module in missing))
        raise MissingExtraError(f"{names} not installed; run: pip install 'posrag[{chosen}]'")
