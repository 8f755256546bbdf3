"""Forward passes in addition to those that `generate` makes."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

from shared_core._extras import require
from shared_core.generation.hugging_face import LAST_TOKEN

if TYPE_CHECKING:
    from torch import Tensor


def read(model: Any, tokens: Tensor, **options: Any) -> None:
    """Run one forward pass on tokens, shape (batch, new), with logits for the last token only.

    Options that the model's `forward` does not take are dropped.
    """
    known = inspect.signature(model.forward).parameters
    options["logits_to_keep"] = LAST_TOKEN
    model(input_ids=tokens, **{key: value for key, value in options.items() if key in known})


def read_last(model: Any, mask: Tensor, generated: Any) -> None:
    """Have a model read the last tokens that it generated, before which `generate` stops.

    Parameters
    ----------
    model
        The model.
    mask
        Of the prompts, shape (batch, width).
    generated
        The output of `generate`, as a dictionary. Without a cache in it all tokens are read.
    """
    torch: Any = require("torch", extra="models")
    tokens, cache = generated.sequences, generated.past_key_values
    mask = torch.cat([mask, torch.ones_like(tokens[:, mask.shape[1] :])], dim=1)
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    if cache is None:
        read(model, tokens, attention_mask=mask, position_ids=positions, use_cache=False)
    else:
        read(
            model,
            tokens[:, -1:],
            attention_mask=mask,
            position_ids=positions[:, -1:],
            past_key_values=cache,
            use_cache=True,
        )


def can_crop(cache: Any, *, to_hold: int) -> bool:
    """Whether the cache can still be cropped after growing to `to_hold` tokens.

    This must be known beforehand: one that refuses may already have cropped some of its layers. A
    window that has slid has dropped the tokens before it.
    """
    layers = getattr(cache, "layers", ())
    windows = [getattr(layer, "sliding_window", math.inf) for layer in layers]
    croppable = getattr(cache, "is_croppable", None)
    if croppable is None:  # an earlier transformers: any cache has `crop`, not every layer
        croppable = all(hasattr(each, "crop") for each in (cache, *layers))
    return croppable and to_hold < min(windows, default=math.inf)
