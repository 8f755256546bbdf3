"""The options of `CAUS` as JSON and back, for `save` and `load`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shared_core import CAUS
from shared_core.options import decode_placement, decode_psi, encode_placement, encode_psi


def encode_caus(caus: CAUS) -> dict[str, Any]:
    """Return every option of a `CAUS` as JSON."""
    options = {field.name: getattr(caus, field.name) for field in fields(caus)}
    options["placement"] = encode_placement(caus.placement)
    options["psi"] = encode_psi(caus.psi)
    return options


def decode_caus(options: Mapping[str, Any]) -> CAUS:
    """Return the `CAUS` that `encode_caus` described.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
    """
    unknown = set(options) - {field.name for field in fields(CAUS)}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}")
    decoded = dict(options)
    decoded["placement"] = decode_placement(decoded["placement"])
    decoded["psi"] = decode_psi(decoded["psi"])
    return CAUS(**decoded)
