"""What distinguishes a local model's answers: its weights, settings and tokenizer."""

from __future__ import annotations

import hashlib
import json
import warnings
import zlib
from typing import Any

from shared_core._extras import require
from shared_core.wording import counted

_ELSEWHERE = ("_name_or_path", "transformers_version")
"""Settings that say where a model comes from, which changes no answer."""


def hash_of_weights(model: Any, name: str) -> str:
    """Return a hash of every value of a model's weights, with their names, shapes and precision.

    Warns
    -----
    UserWarning
        If there are weights whose values cannot be read, such as those offloaded to disk or kept
        in a quantiser's own form: after a training that changes nothing else, the model is taken
        for the one before.
    """
    torch: Any = require("torch", extra="models")
    described, unread = [], []
    for key, weight in model.state_dict().items():
        if isinstance(weight, torch.Tensor):
            described.append(f"{key} {tuple(weight.shape)} {weight.dtype}")
        try:
            values = weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
            described.append(str(zlib.crc32(values)))
        except (RuntimeError, TypeError, AttributeError):  # on no device, or no tensor
            unread.append(key)
    if unread:
        warnings.warn(
            f"the values of {counted(len(unread), 'weight')} of {name!r} cannot be read, such as "
            f"{unread[0]}: after a training of these, answers that were kept before are taken for "
            "its own; ask afresh then",
            stacklevel=2,
        )
    return hashlib.sha256("\0".join(described).encode()).hexdigest()


def settings_of(config: Any) -> str:
    """Return the settings of a model's layers as JSON, as they differ from the usual ones."""
    settings = config.to_diff_dict()
    kept = {key: value for key, value in settings.items() if key not in _ELSEWHERE}
    return json.dumps(kept, sort_keys=True, default=str)


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
