"""Types of the postprocessors' fields: as pydantic takes them in, and as JSON in `to_dict`."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypeAlias

from llama_index.core.bridge.pydantic import PlainSerializer
from pydantic import BeforeValidator, PlainValidator

from shared_core import Placement
from shared_core.checking import check_count
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import ChunkSource, NeighbourSpans
from shared_core.options import (
    decode_chunk_keys,
    decode_expand,
    decode_placement,
    decode_psi,
    encode_chunk_keys,
    encode_expand,
    encode_placement,
    encode_psi,
)
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.sensitivity import Psi


def _placement(value: Any) -> str | Placement:
    decoded = decode_placement(value)
    if not isinstance(decoded, str | Placement):
        raise ValueError(f"placement must be a name or a Placement, got {value!r}")
    return decoded


def _psi(value: Any) -> Psi:
    decoded: Psi = decode_psi(value)
    return decoded


def _expand(value: Any) -> NeighbourSpans:
    decoded = decode_expand(value)
    if not isinstance(decoded, NeighbourSpans):
        raise ValueError(f"expand must be NeighbourSpans, got {value!r}")
    return decoded


def _chunk_keys(value: Any) -> ChunkKeys:
    decoded = decode_chunk_keys(value)
    if not isinstance(decoded, ChunkKeys):
        raise ValueError(f"chunk_keys must be ChunkKeys, got {value!r}")
    return decoded


def _chunks(value: Any) -> ChunkSource | None:
    if value is not None and not hasattr(value, "around"):
        raise ValueError(f"chunks must be a ChunkSource, got {value!r}")
    source: ChunkSource | None = value
    return source


# Checked before pydantic, which takes True for 1 and "3" for 3; pydantic makes NumPy's numbers
# Python's.
KField: TypeAlias = Annotated[int, BeforeValidator(partial(check_count, name="k"))]
AlphaField: TypeAlias = Annotated[Alpha, BeforeValidator(check_alpha)]
PlacementField: TypeAlias = Annotated[
    str | Placement, PlainValidator(_placement), PlainSerializer(encode_placement)
]
PsiField: TypeAlias = Annotated[Psi, PlainValidator(_psi), PlainSerializer(encode_psi)]
ExpandField: TypeAlias = Annotated[
    NeighbourSpans, PlainValidator(_expand), PlainSerializer(encode_expand)
]
ChunkKeysField: TypeAlias = Annotated[
    ChunkKeys, PlainValidator(_chunk_keys), PlainSerializer(encode_chunk_keys)
]
ChunksField: TypeAlias = Annotated[ChunkSource | None, PlainValidator(_chunks)]
