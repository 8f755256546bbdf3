"""How sensitive a model is to position: questions, the profile, and its index."""

from __future__ import annotations

from shared_core.generation.templates import ABSTAIN, ANSWER, KEY_VALUE, PromptTemplate
from shared_core.sensitivity.distraction import distraction_measures, distractor_kind
from shared_core.sensitivity.figure import draw_profile
from shared_core.sensitivity.position_sensitivity import position_sensitivity_index
from shared_core.sensitivity.profile import PositionProfile, published_names
from shared_core.sensitivity.questions import (
    ProbeQuestion,
    key_value_questions,
    read_questions,
)
from shared_core.sensitivity.records import profile_folder

__all__ = [
    "ABSTAIN",
    "ANSWER",
    "KEY_VALUE",
    "PositionProfile",
    "ProbeQuestion",
    "PromptTemplate",
    "distraction_measures",
    "distractor_kind",
    "draw_profile",
    "key_value_questions",
    "position_sensitivity_index",
    "profile_folder",
    "published_names",
    "read_questions",
]
