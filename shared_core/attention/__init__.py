"""What a model attends to in its prompt, and what that says about documents and positions."""

from __future__ import annotations

from shared_core.attention.by_slot import attention_by_position, attention_profile
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.attention.rankgpt import RankGPT
from shared_core.attention.relevance import ranking_of
from shared_core.attention.rounds import AttentionPlacer, Case, OneRound, TwoRound
from shared_core.attention.self_elicit import SelfElicit

__all__ = [
    "AttentionPlacer",
    "Case",
    "OneRound",
    "RankGPT",
    "SelfElicit",
    "TwoRound",
    "attention_by_position",
    "attention_profile",
    "draw_document_scores",
    "draw_positional_curve",
    "ranking_of",
]
