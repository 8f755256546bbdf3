"""Neighbour spans (RetriVex): retrieved chunks, expanded by the chunks next to them."""

from __future__ import annotations

from shared_core.neighbour_spans.chunk_source import ChunkSource
from shared_core.neighbour_spans.chunks import Chunk, End, Neighbourhood, Seed
from shared_core.neighbour_spans.method import NeighbourSpans
from shared_core.neighbour_spans.spans import Expansion, Span, SpanScore, Stop
from shared_core.tokens import estimate_tokens

__all__ = [
    "Chunk",
    "ChunkSource",
    "End",
    "Expansion",
    "NeighbourSpans",
    "Neighbourhood",
    "Seed",
    "Span",
    "SpanScore",
    "Stop",
    "estimate_tokens",
]
