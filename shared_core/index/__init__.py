"""The index: dense (FAISS), sparse (BM25), and the hybrid of both."""

from __future__ import annotations

from shared_core.index.hybrid import HybridIndex
from shared_core.index.sparse import BM25Index
from shared_core.index.tokenize import Tokenizer, tokenize

__all__ = ["BM25Index", "HybridIndex", "Tokenizer", "tokenize"]
