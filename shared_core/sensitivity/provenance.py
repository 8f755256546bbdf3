"""What a measurement was made with: prompt, questions, seed, model, and versions of software."""

from __future__ import annotations

import datetime
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TypedDict

from shared_core.generation.templates import PromptTemplate

_DISTRIBUTIONS = {
    "numpy": "numpy",
    "torch": "torch",
    "transformers": "transformers",
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "openai": "openai",
}


class Provenance(TypedDict):
    """Fields that `PositionProfile` and `PositionalCurve` share."""

    k: int
    template: str
    task: str | None
    seed: int
    date: str
    versions: dict[str, str]
    identity: str


def provenance(
    *, k: int, template: PromptTemplate, task: str | None, seed: int, identity: str
) -> Provenance:
    """Return what a measurement was made with, dated now (UTC, to the second)."""
    return Provenance(
        k=k,
        template=template.text,
        task=task,
        seed=seed,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions(),
        identity=identity,
    )


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
