"""Neighbour spans (RetriVex): retrieved chunks, expanded by the chunks next to them."""

from __future__ import annotations

from shared_core.neighbour_spans.budget import Expansion, Span
from shared_core.neighbour_spans.chunks import (
    Chunk,
    ChunkSource,
    Neighbourhood,
    Seed,
    stitch,
)
from shared_core.neighbour_spans.expanded import (
    ExpandedArrangement,
    expand_passages,
    expand_ranking,
    place_spans,
)
from shared_core.neighbour_spans.method import NeighbourSpans
from shared_core.neighbour_spans.neighbours import DocumentNeighbours, PassageNeighbours
from shared_core.neighbour_spans.places import ChunkKeys, ChunkReader, Links

__all__ = [
    "Chunk",
    "ChunkKeys",
    "ChunkReader",
    "ChunkSource",
    "DocumentNeighbours",
    "ExpandedArrangement",
    "Expansion",
    "Links",
    "NeighbourSpans",
    "Neighbourhood",
    "PassageNeighbours",
    "Seed",
    "Span",
    "expand_passages",
    "expand_ranking",
    "place_spans",
    "stitch",
]
