"""Causal language models of transformers: loaded by folder or hub name, and called by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared_core._extras import require
from shared_core.errors import GenerationError

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_causal_model(name: str | Path, *, device: str | None = None) -> tuple[Any, Any]:
    """Load a model in the precision it was saved in, and its tokenizer.

    Parameters
    ----------
    name
        Folder, or hub name; with ``HF_HUB_OFFLINE=1`` only what has been downloaded.
    device
        ``"cuda"``, ``"cuda:1"``, ``"mps"`` or ``"cpu"``; by default the first there is.

    Raises
    ------
    GenerationError
        If there is no such model, or it cannot be loaded.
    MissingExtraError
        If torch or transformers is not installed.
    """
    torch: Any = require("torch", extra="models")
    package: Any = require("transformers", extra="models")
    tokenizer = load_tokenizer(name)
    with _explained(name):
        model = package.AutoModelForCausalLM.from_pretrained(name, dtype="auto")
        return model.to(device or _best_device(torch)), tokenizer


def load_tokenizer(name: str | Path) -> Any:
    """Load the tokenizer of a model, and none of its weights.

    Parameters
    ----------
    name
        Folder, or hub name; with ``HF_HUB_OFFLINE=1`` only what has been downloaded.

    Raises
    ------
    GenerationError
        If there is no such model, or its tokenizer cannot be loaded.
    MissingExtraError
        If transformers is not installed.
    """
    package: Any = require("transformers", extra="models")
    with _explained(name):
        if is_missing_folder(name):
            raise FileNotFoundError("no such folder")
        return package.AutoTokenizer.from_pretrained(name)


@contextmanager
def _explained(name: str | Path) -> Iterator[None]:
    """Name the model, and what to give instead, in any error."""
    try:
        yield
    except Exception as error:  # what a missing model raises differs with the cause
        raise GenerationError(
            f"cannot load the language model {str(name)!r} ({first_line(error)}); give the "
            f"folder of a causal model with its tokenizer, or a hub name that can be reached or "
            f"has been downloaded"
        ) from error


def is_missing_folder(name: str | Path) -> bool:
    """Whether a name is neither that of a folder nor a possible hub name."""
    return not Path(name).is_dir() and not _HUB_NAME.fullmatch(str(name))


def name_of(model: Any) -> str:
    """Return the hub name of a model, the last part of its folder, or else its class."""
    known = str(getattr(model.config, "_name_or_path", "") or "")
    path = Path(known)
    if path.parent.name == "snapshots":  # the hub's own cache: models--<owner>--<name>
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    if path.is_absolute() or (known and path.is_dir()):
        return path.resolve().name
    return known or type(model).__name__


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the name of its class."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
