"""What a model attends to in its prompt, and what that says about documents and positions."""

from __future__ import annotations

from shared_core.attention.estimators import (
    ESTIMATORS,
    Estimator,
    SelfElicit,
    parse_permutation,
    rankgpt_prompt,
    ranking_of,
)
from shared_core.attention.profile import attention_profile
from shared_core.attention.reading import (
    AnswerAttention,
    answer_with_attention,
    attention_of_answer,
)
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import document_scores, layer_halves, token_scores
from shared_core.attention.two_round import Case, PlacedAnswer, TwoRound

__all__ = [
    "ESTIMATORS",
    "AnswerAttention",
    "Case",
    "Estimator",
    "PlacedAnswer",
    "RenderedPrompt",
    "SelfElicit",
    "TwoRound",
    "answer_with_attention",
    "attention_of_answer",
    "attention_profile",
    "document_scores",
    "layer_halves",
    "parse_permutation",
    "rankgpt_prompt",
    "ranking_of",
    "render_prompt",
    "token_scores",
]
