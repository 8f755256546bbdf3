"""The index: dense (FAISS), sparse (BM25), the hybrid of both, and the neighbours of passages."""

from __future__ import annotations

from shared_core.index.hybrid import HybridIndex
from shared_core.index.sparse.index import BM25Index
from shared_core.index.tokenize import tokenize
from shared_core.neighbour_spans import ChunkKeys
from shared_core.types import Tokenizer

__all__ = ["BM25Index", "ChunkKeys", "HybridIndex", "Tokenizer", "tokenize"]
