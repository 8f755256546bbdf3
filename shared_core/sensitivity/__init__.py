"""How sensitive a model is to position: its profile, its index, and the gate built on it."""

from __future__ import annotations

from shared_core.sensitivity.gate import Psi, decide, profile_of
from shared_core.sensitivity.profile import (
    PositionProfile,
    position_sensitivity_index,
    profile_folder,
)

__all__ = [
    "PositionProfile",
    "Psi",
    "decide",
    "position_sensitivity_index",
    "profile_folder",
    "profile_of",
]
