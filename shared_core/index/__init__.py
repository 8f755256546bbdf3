"""The indexes: passages under BM25, and the hybrid of BM25 and vectors."""

from __future__ import annotations

from shared_core.index.hybrid import HybridIndex
from shared_core.index.metadata import Where
from shared_core.index.passages import PassageIndex
from shared_core.index.sparse.bm25 import Variant
from shared_core.index.tokenize import tokenize
from shared_core.neighbour_spans import ChunkKeys
from shared_core.types import Tokenizer

__all__ = [
    "ChunkKeys",
    "HybridIndex",
    "PassageIndex",
    "Tokenizer",
    "Variant",
    "Where",
    "tokenize",
]
