"""How many tokens a model can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_LIMITS = ("max_position_embeddings", "max_seq_len", "model_max_length")
_FROM_LIMIT = ("yarn", "dynamic")
"""Kinds of rotary embedding that are scaled from the limit where no original one is given."""


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
