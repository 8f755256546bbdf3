"""Corpora that need no download."""

from __future__ import annotations

from shared_core.corpora.torch_api import torch_api_passages
from shared_core.corpora.torch_queries import TorchQuery, torch_queries

__all__ = ["TorchQuery", "torch_api_passages", "torch_queries"]
