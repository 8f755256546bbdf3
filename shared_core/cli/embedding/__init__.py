"""Embedding models of the subcommands, and the vectors that are kept of them."""

from __future__ import annotations

from shared_core.cli.embedding.journal import EmbeddingJournal
from shared_core.cli.embedding.kept import Embedding
from shared_core.cli.embedding.model import EmbeddingModel, default_model

__all__ = ["Embedding", "EmbeddingJournal", "EmbeddingModel", "default_model"]
