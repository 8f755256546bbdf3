"""The prompts of the probe; they are defined in `shared_core.generation.templates`."""

from __future__ import annotations

from shared_core.generation.templates import (
    ABSTAIN,
    ABSTENTION,
    ANSWER,
    KEY_VALUE,
    PromptTemplate,
)

__all__ = ["ABSTAIN", "ABSTENTION", "ANSWER", "KEY_VALUE", "PromptTemplate"]
