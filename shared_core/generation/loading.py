"""Causal language models of transformers: how they are loaded, called, and what they can read."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared_core._extras import require
from shared_core.errors import GenerationError

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_LIMITS = ("max_position_embeddings", "max_seq_len", "model_max_length")
_FROM_LIMIT = ("yarn", "dynamic")
"""Kinds of rotary embedding that are scaled from the limit where no original one is given."""


def load_causal_model(name: str | Path, *, device: str | None = None) -> tuple[Any, Any]:
    """Load a model in the precision it was saved in, and its tokenizer.

    Parameters
    ----------
    name
        Folder, or hub name; with ``HF_HUB_OFFLINE=1`` only what has been downloaded. Either may end
        with the name of a GGUF file in it, whose weights are dequantized.
    device
        ``"cuda"``, ``"cuda:1"``, ``"mps"`` or ``"cpu"``; by default the first there is.

    Raises
    ------
    GenerationError
        If there is no such model, or it cannot be loaded.
    MissingExtraError
        If torch or transformers is not installed, or what it reads GGUF files with.
    """
    torch: Any = require("torch", extra="models")
    package: Any = require("transformers", extra="models")
    if is_gguf(name):
        require("accelerate", extra="gguf")
    tokenizer = load_tokenizer(name)
    with _explained(name):
        place, file = _place_of(name)
        model = package.AutoModelForCausalLM.from_pretrained(place, dtype="auto", **file)
        return model.to(device or _best_device(torch)), tokenizer


def load_tokenizer(name: str | Path) -> Any:
    """Load the tokenizer of a model, and none of its weights.

    Parameters
    ----------
    name
        As in `load_causal_model`.

    Raises
    ------
    GenerationError
        If there is no such model, or its tokenizer cannot be loaded.
    MissingExtraError
        If transformers is not installed, or what it reads GGUF files with.
    """
    package: Any = require("transformers", extra="models")
    if is_gguf(name):
        require("gguf", extra="gguf")
    place, file = _place_of(name)
    with _explained(name):
        if is_missing_folder(place):
            raise FileNotFoundError("no such folder")
        if file and Path(place).is_dir() and not Path(name).is_file():
            raise FileNotFoundError("no such file")
        if not file and (found := _gguf_of(Path(place))):
            raise FileNotFoundError(f"it is that of a GGUF file: give {found.as_posix()}")
        return package.AutoTokenizer.from_pretrained(place, **file)


def is_gguf(name: str | Path) -> bool:
    """Whether a name is that of a GGUF file, in a folder or on the hub."""
    return Path(name).suffix.lower() == ".gguf"


def _gguf_of(folder: Path) -> Path | None:
    """Return a GGUF file of a folder that holds no other form of a model."""
    if not folder.is_dir() or (folder / "config.json").exists():
        return None
    return min(filter(is_gguf, folder.iterdir()), default=None)


def _place_of(name: str | Path) -> tuple[str, dict[str, str]]:
    """Return the folder or hub name, and the GGUF file in it as an option, if there is one."""
    path = Path(name)
    return (path.parent.as_posix(), {"gguf_file": path.name}) if is_gguf(name) else (str(name), {})


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


def unwrapped(model: Any) -> Any:
    """Return a model without what ``torch.compile``, PEFT or another library wraps around it.

    A wrapper may hide which options its model takes, and its attention is that of the model. What
    such libraries add to the model's layers, as LoRA does, stays there.

    Parameters
    ----------
    model
        A ``PreTrainedModel``, or a module that holds one.

    Returns
    -------
    PreTrainedModel
        The outermost one; of one that was compiled in place, a copy with the same weights.

    Raises
    ------
    ValueError
        If there is none, or the wrapper adds weights around it, such as learnt prompts.
    """
    package: Any = require("transformers", extra="models")
    name = type(model).__name__
    parts = model.modules() if hasattr(model, "modules") else ()
    inner = next((part for part in parts if isinstance(part, package.PreTrainedModel)), None)
    if inner is None:
        raise ValueError(f"model must be a PreTrainedModel of transformers, got a {name}")
    own = {id(weight) for weight in model.parameters()}
    if not own <= {id(weight) for weight in inner.parameters()}:
        raise ValueError(
            f"{name} has weights of its own around its {type(inner).__name__}, which would not be "
            "used; merge them into the model, or give the model inside"
        )
    # a copy is without what `inner.compile()` put in place of its call
    return inner if inner._compiled_call_impl is None else copy.copy(inner)


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


def context_length(config: Any) -> int | None:
    """Return the longest context of a model in tokens, or None if its configuration does not say.

    If its rotary embedding is scaled, as model cards describe, this is the scaled length
    ``original_max_position_embeddings * factor``, unless the given limit is larger.

    Parameters
    ----------
    config
        Configuration of the model, a ``PretrainedConfig``.
    """
    text = config.get_text_config()
    given = (getattr(text, name, None) for name in _LIMITS)
    limit = next((int(value) for value in given if value is not None), None)
    if limit is None:
        return None
    return max(limit, *(_scaled(rope, text, limit) for rope in _ropes(text)), 0)


def _scaled(rope: Mapping[str, Any], text: Any, limit: int) -> int:
    kind, factor = rope.get("rope_type", rope.get("type")), rope.get("factor")
    name = "original_max_position_embeddings"
    original = rope.get(name) or getattr(text, name, None)
    if original is None and kind in _FROM_LIMIT:
        original = limit
    return 0 if factor is None or original is None else int(original * factor)


def _ropes(text: Any) -> Iterator[Mapping[str, Any]]:
    """Yield how the rotary embedding is scaled, in all layers or in those of each kind."""
    found = getattr(text, "rope_parameters", None)
    if found is None:  # transformers 4 has another name for it
        found = getattr(text, "rope_scaling", None) or {}
    yield found
    yield from (value for value in found.values() if isinstance(value, Mapping))
