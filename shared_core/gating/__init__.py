"""Retrieve or not: the Context Awareness Gate with Vector Candidates (CAG)."""

from __future__ import annotations

from shared_core.gating.candidates import VectorCandidates
from shared_core.gating.choosing import Choice, choose
from shared_core.gating.coverage import WordCoverage
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.drift import DriftMonitor
from shared_core.gating.everyday import EVERYDAY_QUESTIONS
from shared_core.gating.gate import ContextGate
from shared_core.gating.policies import Policy
from shared_core.gating.prompts import CHAIN_OF_THOUGHT, FEW_SHOT, GatedPrompts
from shared_core.gating.pseudo_queries import (
    first_sentences,
    generate_pseudo_queries,
    key_phrases,
    read_pseudo_queries,
)
from shared_core.gating.transforms import Transform, hyde, rewriting, unwrapped

__all__ = [
    "CHAIN_OF_THOUGHT",
    "EVERYDAY_QUESTIONS",
    "FEW_SHOT",
    "Choice",
    "ContextGate",
    "DriftMonitor",
    "GatedPrompts",
    "Policy",
    "RetrievalDecision",
    "Transform",
    "VectorCandidates",
    "WordCoverage",
    "choose",
    "first_sentences",
    "generate_pseudo_queries",
    "hyde",
    "key_phrases",
    "read_pseudo_queries",
    "rewriting",
    "unwrapped",
]
