"""The public names of the core; `shared_core` offers them, too, and imports them at first use."""

from __future__ import annotations

from shared_core.attention import (
    Case,
    OneRound,
    RankGPT,
    SelfElicit,
    TwoRound,
    attention_by_position,
    draw_positional_curve,
)
from shared_core.caus import CAUS
from shared_core.comparison import Comparison, ComparisonResult, read_comparison
from shared_core.engines import Engine, connect
from shared_core.engines.adopting import (
    adopt,
    lancedb_rows,
    langchain_postgres_rows,
    llamaindex_postgres_rows,
    milvus_rows,
    qdrant_rows,
    selected_rows,
)
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
from shared_core.evaluation import paired_difference_interval
from shared_core.gating import (
    GatedPrompts,
    choose_threshold,
    generate_pseudo_queries,
    hyde,
    rewriting,
)
from shared_core.generation import HuggingFaceModel, Journal
from shared_core.index import ChunkKeys, HybridIndex, PassageIndex, tokenize
from shared_core.neighbour_spans import NeighbourSpans, PassageNeighbours, Seed
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
    UShapeBestLast,
    resolve_placement,
    u_shape_order,
)
from shared_core.placement.order_gate import decide_order
from shared_core.probe import Probe
from shared_core.scoring import rank
from shared_core.sensitivity import (
    KEY_VALUE,
    PositionProfile,
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
    "Case",
    "ChunkKeys",
    "Comparison",
    "ComparisonResult",
    "CorruptIndexError",
    "EmbeddingMismatchError",
    "Engine",
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
    "OneRound",
    "OrderDecision",
    "Passage",
    "PassageIndex",
    "PassageNeighbours",
    "Placement",
    "PositionProfile",
    "PosragError",
    "Probe",
    "ProbeQuestion",
    "ProfileNotFoundError",
    "RankGPT",
    "Ranking",
    "Seed",
    "SelfElicit",
    "Sequential",
    "Shuffle",
    "SourceOrder",
    "TwoRound",
    "UShape",
    "UShapeBestLast",
    "adopt",
    "attention_by_position",
    "choose_threshold",
    "connect",
    "decide_order",
    "draw_positional_curve",
    "draw_profile",
    "generate_pseudo_queries",
    "hyde",
    "key_value_questions",
    "lancedb_rows",
    "langchain_postgres_rows",
    "llamaindex_postgres_rows",
    "milvus_rows",
    "paired_difference_interval",
    "position_sensitivity_index",
    "qdrant_rows",
    "rank",
    "read_comparison",
    "read_questions",
    "resolve_placement",
    "rewriting",
    "selected_rows",
    "tokenize",
    "u_shape_order",
]
