"""Neighbour spans (RetriVex): retrieved chunks, expanded by the chunks next to them."""

from __future__ import annotations

from shared_core.neighbour_spans.budget import Expansion, Span
from shared_core.neighbour_spans.chunks import (
    Chunk,
    ChunkSource,
    End,
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
from shared_core.neighbour_spans.neighbours import ChunkTables, PassageNeighbours
from shared_core.neighbour_spans.order import Visible
from shared_core.neighbour_spans.places import ChunkKeys, ChunkReader, Links
from shared_core.neighbour_spans.stored import LinkedStore, NumberedStore

__all__ = [
    "Chunk",
    "ChunkKeys",
    "ChunkReader",
    "ChunkSource",
    "ChunkTables",
    "End",
    "ExpandedArrangement",
    "Expansion",
    "LinkedStore",
    "Links",
    "NeighbourSpans",
    "Neighbourhood",
    "NumberedStore",
    "PassageNeighbours",
    "Seed",
    "Span",
    "Visible",
    "expand_passages",
    "expand_ranking",
    "place_spans",
    "stitch",
]
