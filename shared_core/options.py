"""Options to JSON and back, so that an index is loaded with the options it was used with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from shared_core.caus import CAUS
from shared_core.neighbour_spans import ChunkKeys, NeighbourSpans
from shared_core.placement import PLACEMENTS, Placement, resolve_placement
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import PositionProfile, Psi
from shared_core.sensitivity.records import is_file
from shared_core.types import Evidence, Fusion

CAUS_KEY = "caus"
"""Key of the options in `HybridIndex.extra`, the same for every adapter."""


class CAUSArguments(TypedDict, total=False):
    """Keyword arguments of `CAUS`."""

    k: int
    alpha: Alpha
    fetch_k: int
    fusion: Fusion
    placement: str | Placement
    psi: Psi
    evidence: Evidence
    expand: NeighbourSpans | None
    chunk_keys: ChunkKeys


def encode_placement(placement: str | Placement) -> str | dict[str, Any]:
    """Return a placement's name, or for an object its name and options.

    A custom placement class is stored by its name too, but `decode_placement` will not find it.
    """
    if isinstance(placement, str):
        return placement
    return {"name": placement.name, **asdict(placement)}


def decode_placement(value: Any) -> Any:
    """Return the placement that `encode_placement` described, and anything else as it is.

    Raises
    ------
    ValueError
        If no placement has the name, or that one has no such options.
    """
    if not isinstance(value, Mapping):
        return value
    options = dict(value)
    name = options.pop("name", None)
    resolve_placement(name)
    try:
        return PLACEMENTS[name](**options)
    except TypeError as error:
        raise ValueError(
            f"cannot restore placement {value!r}: {error}; give placement= again"
        ) from error


def encode_expand(expand: NeighbourSpans | None) -> dict[str, Any] | None:
    """Return how passages are expanded, as JSON; of a token counter only that there was one."""
    if expand is None:
        return None
    options = {field.name: getattr(expand, field.name) for field in fields(expand)}
    options["weights"] = list(expand.weights)
    options["order"] = encode_placement(expand.order)
    options["count_tokens"] = expand.count_tokens is not None
    return options


def decode_expand(value: Any) -> Any:
    """Return the `NeighbourSpans` that `encode_expand` described, and anything else as it is.

    Raises
    ------
    ValueError
        If it counted tokens by a function, which cannot be saved, or an option is out of range.
    """
    if not isinstance(value, Mapping):
        return value
    options = dict(value)
    if options.pop("count_tokens", False):
        raise ValueError(
            "the tokens of spans were counted by a custom count_tokens, which is not saved; "
            "give expand= again"
        )
    weights, order = tuple(options.pop("weights")), decode_placement(options.pop("order"))
    return NeighbourSpans(**options, weights=weights, order=order)


def encode_chunk_keys(keys: ChunkKeys) -> dict[str, Any]:
    """Return the names as JSON."""
    return {**asdict(keys), "heading": list(keys.heading)}


def decode_chunk_keys(value: Any) -> Any:
    """Return the `ChunkKeys` that `encode_chunk_keys` described, and anything else as it is."""
    return ChunkKeys(**value) if isinstance(value, Mapping) else value


def encode_psi(psi: Any) -> Any:
    """Return a profile, or the one in a file, as a dictionary, and anything else as in JSON.

    A path would be looked up where the options are decoded; a name means the same everywhere.
    """
    if isinstance(psi, str | Path) and is_file(Path(psi)):
        psi = PositionProfile.load(psi)
    if isinstance(psi, PositionProfile):
        return asdict(psi)
    if isinstance(psi, np.integer | np.floating):
        return float(psi)
    return str(psi) if isinstance(psi, Path) else psi


def decode_psi(value: Any) -> Any:
    """Return the profile that `encode_psi` described, and anything else as it is."""
    return PositionProfile(**value) if isinstance(value, Mapping) else value


_CODERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "placement": (encode_placement, decode_placement),
    "psi": (encode_psi, decode_psi),
    "expand": (encode_expand, decode_expand),
    "chunk_keys": (encode_chunk_keys, decode_chunk_keys),
}
"""Option of `CAUS` -> how it is encoded and decoded; the others are JSON as they are."""


def encode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `CAUS`, by name, as they come back from JSON: with lists for tuples.

    Raises
    ------
    ValueError
        If one holds a value that JSON cannot, as a custom placement may.
    """
    encoded = {
        name: _CODERS[name][0](value) if name in _CODERS else value
        for name, value in options.items()
    }
    try:
        read: dict[str, Any] = json.loads(json.dumps(encoded))
    except TypeError as error:
        raise ValueError(f"the options {encoded!r} cannot be saved as JSON: {error}") from error
    return read


def decode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that `encode_options` described; any other is left as it is.

    Raises
    ------
    ValueError
        If no placement has the name, or `expand` counted tokens by a function.
    """
    return {
        name: _CODERS[name][1](value) if name in _CODERS else value
        for name, value in options.items()
    }


def encode_caus(caus: CAUS) -> dict[str, Any]:
    """Return every option of a `CAUS` as it comes back from JSON; see `encode_options`."""
    return encode_options({field.name: getattr(caus, field.name) for field in fields(caus)})


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
    return CAUS(**decode_options(options))
