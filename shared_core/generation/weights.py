"""What distinguishes a local model's answers: its weights, settings and tokenizer."""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from shared_core._extras import require
from shared_core.generation.fingerprint import without_addresses
from shared_core.wording import counted

_ELSEWHERE = (
    "_name_or_path",
    "architectures",
    "dtype",
    "torch_dtype",
    "transformers_version",
    "use_cache",
)
"""Settings that say where a model comes from, which changes no answer, or repeat what the weights
show."""


def hash_of_weights(model: Any, name: str) -> str:
    """Return a hash of every value of a model's weights, with their names, shapes and precision.

    Warns
    -----
    UserWarning
        If there are weights whose values cannot be read, such as those offloaded to disk: after
        a training that changes nothing else, the model is taken for the one before.
    """
    parts = [(key, part) for key, weight in model.state_dict().items() for part in _parts(weight)]
    with ThreadPoolExecutor(4) as pool:  # a checksum of seven billion values takes its time
        sums = [*pool.map(_checksum, (part for _, part in parts))]
    unread = [key for (key, _), found in zip(parts, sums, strict=True) if found is None]
    if unread:
        warnings.warn(
            f"the values of {counted(len(unread), 'weight')} of {name!r} cannot be read, such as "
            f"{unread[0]}: after a training of these, answers that were kept before are taken for "
            "its own; ask afresh then",
            stacklevel=2,
        )
    described = (
        f"{key} {_shape(part)} {found}" for (key, part), found in zip(parts, sums, strict=True)
    )
    return hashlib.sha256("\0".join(described).encode()).hexdigest()


def versions_of(model: Any) -> list[tuple[object, ...]]:
    """Return which weights a model has, and how often each has been changed in place."""
    weights = (*model.parameters(), *model.buffers())
    # those that were made for inference alone are not counted, and not trained
    return [(id(w), w.dtype, 0 if w.is_inference() else w._version) for w in weights]


def settings_of(config: Any) -> str:
    """Return the settings of a model's layers as JSON, as they differ from the usual ones."""
    return json.dumps(_without(config.to_diff_dict()), sort_keys=True, default=str)


def reading_of(tokenizer: Any) -> str:
    """Return how a tokenizer cuts texts into tokens, and what it adds to them.

    How it pads does not count.
    """
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    special.pop("pad_token", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        rules = f"{sorted(tokenizer.get_vocab().items())} {tokenizer('a b')['input_ids']}"
    else:
        # the part before it is padding and truncation, which any call may set
        rules = backend.to_str().partition('"added_tokens":')[2]
    return f"{sorted(special.items())} {rules}"


def _parts(weight: Any) -> Iterator[Any]:
    """Yield the parts of what a quantised layer keeps together."""
    if isinstance(weight, tuple | list):
        for each in weight:
            yield from _parts(each)
    else:
        yield weight


def _shape(part: Any) -> str:
    torch: Any = require("torch", extra="models")
    if isinstance(part, torch.Tensor):
        return f"{tuple(part.shape)} {part.dtype}"
    return without_addresses(repr(part))


def _checksum(part: Any) -> int | None:
    """Return a checksum of all values of a tensor; None if they cannot be read."""
    torch: Any = require("torch", extra="models")
    if not isinstance(part, torch.Tensor):
        return 0
    try:
        values = part.detach().cpu()
        values = values.dequantize() if values.is_quantized else values
        return zlib.crc32(values.contiguous().flatten().view(torch.uint8).numpy())
    except (RuntimeError, TypeError):  # on no device, or a quantiser's own kind of tensor
        return None


def _without(settings: Any) -> Any:
    if not isinstance(settings, dict):
        return settings
    return {key: _without(value) for key, value in settings.items() if key not in _ELSEWHERE}
