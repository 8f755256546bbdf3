"""What distinguishes a local model's answers: its weights, settings and tokenizer."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shared_core._extras import require
from shared_core.generation.identity import without_addresses

_SAMPLED = 64
"""How many values of each weight represent all of it."""

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


def weights_of(model: Any) -> str:
    """Return a hash of a model's weights: name, shape, precision and first values of each.

    The values of weights that are on no device, such as those offloaded to disk, do not count.
    """
    digest = hashlib.sha256()
    for key, weight in model.state_dict().items():
        digest.update(key.encode() + _first_values(weight))
    return digest.hexdigest()


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


def _first_values(weight: Any) -> bytes:
    torch: Any = require("torch", extra="models")
    if isinstance(weight, tuple | list):
        return b"".join(map(_first_values, weight))
    if not isinstance(weight, torch.Tensor):
        return without_addresses(repr(weight)).encode()
    text = f"{tuple(weight.shape)} {weight.dtype}".encode()
    if weight.is_meta:
        return text
    try:
        first = weight.flatten()[:_SAMPLED]
        first = first.dequantize() if first.is_quantized else first.float()
        return text + bytes(first.cpu().numpy().tobytes())
    except (RuntimeError, TypeError):  # a quantiser's own kind of tensor, which cannot be cut
        return text + without_addresses(repr(weight)).encode()


def _without(settings: Any) -> Any:
    if not isinstance(settings, dict):
        return settings
    return {key: _without(value) for key, value in settings.items() if key not in _ELSEWHERE}
