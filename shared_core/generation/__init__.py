"""Language models that generate text, and how they are asked."""

from __future__ import annotations

from shared_core.generation.asking import Asker
from shared_core.generation.base import Generator, ScoringModel
from shared_core.generation.callables import CallableModel, as_generator
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.journal import Journal

__all__ = [
    "Asker",
    "CallableModel",
    "Generator",
    "HuggingFaceModel",
    "Journal",
    "ScoringModel",
    "as_generator",
]
