"""CAUS for LangChain: hybrid retrieval with explained scores, and placement in the prompt.

What users need of the core is here, too: `PositionProfile`, `NeighbourSpans`, the placements.
"""

# ruff: noqa: E402, F403  -- a missing package is reported before anything imports it

from __future__ import annotations

from shared_core._extras import require as _require

_require("langchain_core", extra="langchain")

import shared_core
from langchain_posrag.attention import AttentionPlacement, TwoRoundChain
from langchain_posrag.compressors import HybridScoreCompressor, PlacementTransformer
from langchain_posrag.gating import ContextAwarenessGate, GatedPrompt, GatedRetriever
from langchain_posrag.generation import LangChainModel
from langchain_posrag.neighbour_spans import NeighbourSpanTransformer
from langchain_posrag.retrievers import CAUSRetriever
from shared_core import *

__all__ = [
    "AttentionPlacement",
    "CAUSRetriever",
    "ContextAwarenessGate",
    "GatedPrompt",
    "GatedRetriever",
    "HybridScoreCompressor",
    "LangChainModel",
    "NeighbourSpanTransformer",
    "PlacementTransformer",
    "TwoRoundChain",
]
__all__ += shared_core.__all__
