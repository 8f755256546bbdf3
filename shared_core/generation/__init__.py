"""Language models that generate text, and how they are asked."""

from __future__ import annotations

from shared_core.generation.ask import ModelClient
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.journal import Journal
from shared_core.generation.models import CallableModel, Generator, ScoringModel, as_generator

__all__ = [
    "CallableModel",
    "Generator",
    "HuggingFaceModel",
    "Journal",
    "ModelClient",
    "ScoringModel",
    "as_generator",
]
