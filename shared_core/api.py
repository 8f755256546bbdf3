"""The public names of the core; `shared_core` offers them, too, and imports them at first use."""

from __future__ import annotations

from shared_core.caus import CAUS
from shared_core.errors import (
    CorruptIndexError,
    EmbeddingMismatchError,
    GenerationError,
    IndexFormatError,
    MissingExtraError,
    PosragError,
    ProfileNotFoundError,
)
from shared_core.generation import HuggingFaceModel, Journal
from shared_core.index import BM25Index, HybridIndex, tokenize
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.placement import PLACEMENTS, Placement, resolve_placement, u_shape_order
from shared_core.scoring import auto_alpha, fuse, min_max, rank
from shared_core.sensitivity import (
    PositionProfile,
    Probe,
    ProbeQuestion,
    decide,
    draw_profile,
    key_value_questions,
    position_sensitivity_index,
    read_questions,
)
from shared_core.types import Arrangement, GateDecision, Passage, Ranking

__all__ = [
    "CAUS",
    "PLACEMENTS",
    "Arrangement",
    "BM25Index",
    "CorruptIndexError",
    "EmbeddingMismatchError",
    "GateDecision",
    "GenerationError",
    "HuggingFaceModel",
    "HybridIndex",
    "IndexFormatError",
    "Journal",
    "MissingExtraError",
    "NeighbourSpans",
    "Passage",
    "Placement",
    "PositionProfile",
    "PosragError",
    "Probe",
    "ProbeQuestion",
    "ProfileNotFoundError",
    "Ranking",
    "auto_alpha",
    "decide",
    "draw_profile",
    "fuse",
    "key_value_questions",
    "min_max",
    "position_sensitivity_index",
    "rank",
    "read_questions",
    "resolve_placement",
    "tokenize",
    "u_shape_order",
]
