"""posrag for LlamaIndex: hybrid retrieval, and passages placed where the model reads them.

What users need of the core is here, too: `PositionProfile`, `NeighbourSpans`, the placements.
"""

# ruff: noqa: E402, F403  -- a missing package is reported before anything needs it

from __future__ import annotations

from shared_core._extras import require as _require

_require("llama_index.core", extra="llamaindex")

import shared_core
from llamaindex_posrag.attention import AttentionPlacementPostprocessor, TwoRoundQueryEngine
from llamaindex_posrag.generation import LlamaIndexModel
from llamaindex_posrag.neighbour_spans import NeighbourSpanPostprocessor
from llamaindex_posrag.nodes import ExplainedNode
from llamaindex_posrag.postprocessors import CAUSPostprocessor, PlacementPostprocessor
from llamaindex_posrag.query_engines import DirectQueryEngine, GatedQueryEngine
from llamaindex_posrag.retrieval_gate import ContextAwarenessSelector, load_gate
from llamaindex_posrag.retrievers import CAUSRetriever
from shared_core import *

# isort: split
from llamaindex_posrag.persistence import connect as connect  # the core's does not keep nodes

__all__ = [
    "AttentionPlacementPostprocessor",
    "CAUSPostprocessor",
    "CAUSRetriever",
    "ContextAwarenessSelector",
    "DirectQueryEngine",
    "ExplainedNode",
    "GatedQueryEngine",
    "LlamaIndexModel",
    "NeighbourSpanPostprocessor",
    "PlacementPostprocessor",
    "TwoRoundQueryEngine",
    "load_gate",
]
__all__ += shared_core.__all__
