"""Corpora that need no download."""

from __future__ import annotations

from shared_core.corpora.torch_api import torch_api_passages

__all__ = ["torch_api_passages"]
