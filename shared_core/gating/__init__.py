"""Retrieve or not: the Context Awareness Gate with Vector Candidates (CAG)."""

from __future__ import annotations

from shared_core.gating.candidates import EVERYDAY_QUESTIONS, VectorCandidates
from shared_core.gating.decision import Policy, RetrievalDecision
from shared_core.gating.fit import PolicyChoice, choose_policy
from shared_core.gating.gate import ContextGate
from shared_core.gating.prompts import (
    CHAIN_OF_THOUGHT,
    GatedPrompts,
    Transform,
    generate_pseudo_queries,
    hyde,
    read_pseudo_queries,
    rewriting,
    unwrapped,
)
from shared_core.gating.words import WordCoverage, key_phrases

__all__ = [
    "CHAIN_OF_THOUGHT",
    "EVERYDAY_QUESTIONS",
    "ContextGate",
    "GatedPrompts",
    "Policy",
    "PolicyChoice",
    "RetrievalDecision",
    "Transform",
    "VectorCandidates",
    "WordCoverage",
    "choose_policy",
    "generate_pseudo_queries",
    "hyde",
    "key_phrases",
    "read_pseudo_queries",
    "rewriting",
    "unwrapped",
]
