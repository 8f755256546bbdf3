"""What a model attends to in its prompt, and what that says about documents and positions."""

from __future__ import annotations

from shared_core.attention.answering import AnsweringMethod, Case, PlacedAnswer
from shared_core.attention.by_position import AttentionByPosition, attention_by_position
from shared_core.attention.estimators import ESTIMATORS, Estimator, ranking_of
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.attention.listwise import parse_permutation, rankgpt_prompt
from shared_core.attention.one_round import OneRound
from shared_core.attention.profile import attention_profile
from shared_core.attention.rankgpt import RankedAnswer, RankGPT
from shared_core.attention.reading import (
    AnswerAttention,
    answer_with_attention,
    attention_of_answer,
)
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import document_scores, layer_halves, token_scores
from shared_core.attention.self_elicit import ElicitedAnswer, SelfElicit
from shared_core.attention.two_round import TwoRound

__all__ = [
    "ESTIMATORS",
    "AnswerAttention",
    "AnsweringMethod",
    "AttentionByPosition",
    "Case",
    "ElicitedAnswer",
    "Estimator",
    "OneRound",
    "PlacedAnswer",
    "RankGPT",
    "RankedAnswer",
    "RenderedPrompt",
    "SelfElicit",
    "TwoRound",
    "answer_with_attention",
    "attention_by_position",
    "attention_of_answer",
    "attention_profile",
    "document_scores",
    "draw_document_scores",
    "draw_positional_curve",
    "layer_halves",
    "parse_permutation",
    "rankgpt_prompt",
    "ranking_of",
    "render_prompt",
    "token_scores",
]
