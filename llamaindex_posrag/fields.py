"""Types of the postprocessors' fields: as pydantic takes them in, and as JSON in `to_dict`."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from llama_index.core.bridge.pydantic import PlainSerializer
from pydantic import PlainValidator

from llamaindex_posrag.statistics import NodeStatistics
from shared_core import Placement
from shared_core.index.tokenize import Tokenizer
from shared_core.options import decode_placement, decode_psi, encode_placement, encode_psi
from shared_core.sensitivity import Psi


def _placement(value: Any) -> str | Placement:
    decoded = decode_placement(value)
    if not isinstance(decoded, str | Placement):
        raise ValueError(f"placement must be a name or a Placement, got {value!r}")
    return decoded


def _psi(value: Any) -> Psi:
    decoded: Psi = decode_psi(value)
    return decoded


def _tokenizer(value: Any) -> Tokenizer | None:
    if value is not None and not callable(value):
        raise ValueError(f"tokenizer must be callable, got {value!r}")
    tokenizer: Tokenizer | None = value
    return tokenizer


def _corpus(value: Any) -> NodeStatistics | None:
    if value is not None and not isinstance(value, NodeStatistics):
        raise ValueError(f"corpus must be NodeStatistics, got {value!r}")
    return value


PlacementField: TypeAlias = Annotated[
    str | Placement, PlainValidator(_placement), PlainSerializer(encode_placement)
]
PsiField: TypeAlias = Annotated[Psi, PlainValidator(_psi), PlainSerializer(encode_psi)]
TokenizerField: TypeAlias = Annotated[Tokenizer | None, PlainValidator(_tokenizer)]
CorpusField: TypeAlias = Annotated[NodeStatistics | None, PlainValidator(_corpus)]
