"""Corpora that need no download."""

from __future__ import annotations

from shared_core.corpora.torch_api import TorchQuery, torch_api_passages, torch_queries

__all__ = ["TorchQuery", "torch_api_passages", "torch_queries"]
