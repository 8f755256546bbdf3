"""Options as JSON and back: for `save`, and for `to_dict` of the postprocessors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from shared_core import CAUS, PLACEMENTS, Placement, PositionProfile, resolve_placement


def encode_placement(placement: str | Placement) -> str | dict[str, Any]:
    """Return a placement's name, with its options where it has any."""
    if isinstance(placement, str):
        return placement
    options = asdict(placement)
    return {"name": placement.name, **options} if options else placement.name


def decode_placement(value: Any) -> Any:
    """Return the placement that `encode_placement` described.

    Raises
    ------
    ValueError
        If no placement has the name; one of the caller's own is not found by name.
    """
    if not isinstance(value, Mapping):
        return value
    options = dict(value)
    name = options.pop("name", None)
    resolve_placement(name)
    return PLACEMENTS[name](**options)


def encode_psi(psi: Any) -> Any:
    """Return a profile as a dictionary, a path as text, anything else as it is."""
    if isinstance(psi, PositionProfile):
        return asdict(psi)
    return str(psi) if isinstance(psi, Path) else psi


def decode_psi(value: Any) -> Any:
    """Return what `encode_psi` was given, up to a path being text."""
    return PositionProfile(**value) if isinstance(value, Mapping) else value


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
