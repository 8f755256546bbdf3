"""Options to JSON and back, so that an index is loaded with the options it was used with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypedDict

from shared_core.caus import CAUS
from shared_core.neighbour_spans import ChunkKeys, NeighbourSpans
from shared_core.placement import PLACEMENTS, Placement, resolve_placement
from shared_core.placement.order_gate import Psi, profile_of
from shared_core.scoring.fusion import Alpha
from shared_core.sensitivity import PositionProfile
from shared_core.types import Fusion, OrderRule, Tuning

CAUS_KEY = "caus"
"""Key of the options in `HybridIndex.extra`, the same for every adapter."""


class OrderArguments(TypedDict, total=False):
    """Keyword arguments of `CAUS` by which it decides whether to place."""

    psi: Psi
    rule: OrderRule
    hit_rates: Sequence[float] | None


class RescoringArguments(OrderArguments, total=False):
    """Keyword arguments of `CAUS` that count for given candidates."""

    k: int
    alpha: Alpha
    fusion: Fusion
    placement: str | Placement
    distinct: float | None
    per_source: int | None


class CAUSArguments(RescoringArguments, total=False):
    """Keyword arguments of `CAUS`."""

    fetch_k: int
    expand: NeighbourSpans | None
    chunk_keys: ChunkKeys
    min_similarity: float | None
    tuning: Tuning | None


def encode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `CAUS`, by name, as they come back from JSON: with lists for tuples.

    A profile in a file, or saved under a name, is stored whole, since neither leads anywhere on
    another machine; the name of a published one does. Of a custom placement only its name is kept,
    of a token counter only that there was one: both are code, and have to be given again.

    Raises
    ------
    ValueError
        If one holds a value that JSON cannot, as a custom placement may.
    """
    encoded = {}
    for name, value in options.items():
        if name == "psi" and (profile := profile_of(value)) is not None:
            published = PositionProfile.published().get(str(value))
            if published is None or profile != PositionProfile(**published):
                value = profile
        encoded[name] = _plain(value)
    try:
        read: dict[str, Any] = json.loads(json.dumps(encoded))
    except TypeError as error:
        raise ValueError(f"the options {encoded!r} cannot be saved as JSON: {error}") from error
    return read


def _plain(value: Any) -> Any:
    if isinstance(value, Placement):
        return {"name": value.name, **asdict(value)}
    if isinstance(value, NeighbourSpans):
        held = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return held | {"count_tokens": value.count_tokens is not None}
    if isinstance(value, ChunkKeys | PositionProfile | Tuning):
        return asdict(value)
    return str(value) if isinstance(value, Path) else value


def decode_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that `encode_options` described; any other is left as it is.

    Raises
    ------
    ValueError
        If no placement has the name or the options, or `expand` counted tokens by a function.
    """
    decode: dict[str, Callable[[Mapping[str, Any]], object]] = {
        "placement": _placement,
        "expand": _spans,
        "psi": lambda value: PositionProfile(**value),
        "chunk_keys": lambda value: ChunkKeys(**value),
        "tuning": lambda value: Tuning(**{**value, "interval": tuple(value["interval"])}),
    }
    return {
        name: decode[name](value) if name in decode and isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def _placement(value: Mapping[str, Any]) -> Placement:
    options = dict(value)
    name = options.pop("name", None)
    try:
        resolve_placement(name)
        return PLACEMENTS[name](**options)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cannot restore placement {value!r}: {error}; give placement= again"
        ) from error


def _spans(value: Mapping[str, Any]) -> NeighbourSpans:
    options = dict(value)
    if options.pop("count_tokens", False):
        raise ValueError(
            "the tokens of spans were counted by a custom count_tokens, which is not saved; "
            "give expand= again"
        )
    order = options.get("order")
    if isinstance(order, Mapping):
        options["order"] = _placement(order)
    return NeighbourSpans(**options)


def encode_caus(caus: CAUS) -> dict[str, Any]:
    """Return every option of a `CAUS` as it comes back from JSON; see `encode_options`.

    A saved index keeps them in its ``extra``, under `CAUS_KEY`, whichever adapter saves it.
    """
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


def check_option(name: str, value: Any) -> Any:
    """Return one option of `CAUS` as it keeps it, also one that `encode_options` described.

    Raises
    ------
    ValueError
        If the value is out of range.
    """
    # A gate that is shut for sure: whether it has to open is for all options together.
    return getattr(decode_caus({"psi": "never", name: value}), name)
