"""The framework-free core of posrag: where retrieved passages go in a prompt."""

from __future__ import annotations

from shared_core.caus import CAUS
from shared_core.errors import (
    CorruptIndexError,
    EmbeddingMismatchError,
    IndexFormatError,
    MissingExtraError,
    PosragError,
    ProfileNotFoundError,
)
from shared_core.index import BM25Index, HybridIndex, tokenize
from shared_core.placement import PLACEMENTS, Placement, resolve_placement, u_shape_order
from shared_core.scoring import auto_alpha, fuse, min_max, rank
from shared_core.sensitivity import PositionProfile, decide, position_sensitivity_index
from shared_core.types import Arrangement, GateDecision, Passage, Ranking

__version__ = "0.1.0"

__all__ = [
    "CAUS",
    "PLACEMENTS",
    "Arrangement",
    "BM25Index",
    "CorruptIndexError",
    "EmbeddingMismatchError",
    "GateDecision",
    "HybridIndex",
    "IndexFormatError",
    "MissingExtraError",
    "Passage",
    "Placement",
    "PositionProfile",
    "PosragError",
    "ProfileNotFoundError",
    "Ranking",
    "auto_alpha",
    "decide",
    "fuse",
    "min_max",
    "position_sensitivity_index",
    "rank",
    "resolve_placement",
    "tokenize",
    "u_shape_order",
]
