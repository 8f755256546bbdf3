"""Retrieve or not: the Context Awareness Gate with Vector Candidates (CAG)."""

from __future__ import annotations

from shared_core.gating.candidates import EVERYDAY_QUESTIONS, VectorCandidates
from shared_core.gating.decision import Policy, RetrievalDecision
from shared_core.gating.fit import choose_threshold
from shared_core.gating.gate import ContextGate
from shared_core.gating.prompts import (
    CHAIN_OF_THOUGHT,
    GatedPrompts,
    Transform,
    generate_pseudo_queries,
    hyde,
    rewriting,
    unwrapped,
)
from shared_core.gating.words import WordCoverage

__all__ = [
    "CHAIN_OF_THOUGHT",
    "EVERYDAY_QUESTIONS",
    "ContextGate",
    "GatedPrompts",
    "Policy",
    "RetrievalDecision",
    "Transform",
    "VectorCandidates",
    "WordCoverage",
    "choose_threshold",
    "generate_pseudo_queries",
    "hyde",
    "rewriting",
    "unwrapped",
]
