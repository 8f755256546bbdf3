"""Options as JSON and back, so that an index is loaded as it was used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shared_core.placement import PLACEMENTS, Placement, resolve_placement
from shared_core.sensitivity import PositionProfile


def encode_placement(placement: str | Placement) -> str | dict[str, Any]:
    """Return a placement's name, or for an object its name and options.

    A placement class of the caller's own is kept by its name too, and `decode_placement` will
    not find it.
    """
    if isinstance(placement, str):
        return placement
    return {"name": placement.name, **asdict(placement)}


def decode_placement(value: Any) -> Any:
    """Return the placement that `encode_placement` described, and anything else as it is.

    Raises
    ------
    ValueError
        If no placement has the name.
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
