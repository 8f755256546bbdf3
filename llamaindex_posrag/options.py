"""The options of `CAUS` as JSON and back, for `save` and `load`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shared_core import CAUS
from shared_core.options import CODERS


def encode_caus(caus: CAUS) -> dict[str, Any]:
    """Return every option of a `CAUS` as JSON."""
    options = {field.name: getattr(caus, field.name) for field in fields(caus)}
    return {**options, **{name: encode(options[name]) for name, (encode, _) in CODERS.items()}}


def decode_caus(options: Mapping[str, Any]) -> CAUS:
    """Return the `CAUS` that `encode_caus` described.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or `expand` counted tokens by a function.
    """
    unknown = set(options) - {field.name for field in fields(CAUS)}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}")
    decoders = {name: decode for name, (_, decode) in CODERS.items() if name in options}
    decoded = {name: decode(options[name]) for name, decode in decoders.items()}
    return CAUS(**{**options, **decoded})
