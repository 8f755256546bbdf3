"""The public names of the core; `shared_core` offers them, too, and imports them at first use."""

from __future__ import annotations

from shared_core.caus import CAUS
from shared_core.engines import connect
from shared_core.errors import (
    CorruptIndexError,
    EmbeddingMismatchError,
    EngineError,
    GenerationError,
    IndexFormatError,
    MissingExtraError,
    PosragError,
    ProfileNotFoundError,
)
from shared_core.gating import (
    GatedPrompts,
    choose_policy,
    generate_pseudo_queries,
    hyde,
    rewriting,
)
from shared_core.generation import HuggingFaceModel, Journal
from shared_core.index import BM25Index, ChunkKeys, HybridIndex, tokenize
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.placement import (
    PLACEMENTS,
    Inverse,
    MaxRelevance,
    MinDistraction,
    Placement,
    Sequential,
    Shuffle,
    SourceOrder,
    UShape,
    resolve_placement,
    u_shape_order,
)
from shared_core.placement.order_gate import decide_order
from shared_core.scoring import fuse, min_max, rank
from shared_core.sensitivity import (
    KEY_VALUE,
    PositionProfile,
    Probe,
    ProbeQuestion,
    draw_profile,
    key_value_questions,
    position_sensitivity_index,
    read_questions,
)
from shared_core.types import Arrangement, OrderDecision, Passage, Ranking

__all__ = [
    "CAUS",
    "KEY_VALUE",
    "PLACEMENTS",
    "Arrangement",
    "BM25Index",
    "ChunkKeys",
    "CorruptIndexError",
    "EmbeddingMismatchError",
    "EngineError",
    "GatedPrompts",
    "GenerationError",
    "HuggingFaceModel",
    "HybridIndex",
    "IndexFormatError",
    "Inverse",
    "Journal",
    "MaxRelevance",
    "MinDistraction",
    "MissingExtraError",
    "NeighbourSpans",
    "OrderDecision",
    "Passage",
    "Placement",
    "PositionProfile",
    "PosragError",
    "Probe",
    "ProbeQuestion",
    "ProfileNotFoundError",
    "Ranking",
    "Sequential",
    "Shuffle",
    "SourceOrder",
    "UShape",
    "choose_policy",
    "connect",
    "decide_order",
    "draw_profile",
    "fuse",
    "generate_pseudo_queries",
    "hyde",
    "key_value_questions",
    "min_max",
    "position_sensitivity_index",
    "rank",
    "read_questions",
    "resolve_placement",
    "rewriting",
    "tokenize",
    "u_shape_order",
]
