"""Scoring: normalisation, and fusion of the two legs."""

from __future__ import annotations

from shared_core.scoring.fusion import Fused, fuse, min_max
from shared_core.scoring.ranking import rank

__all__ = ["Fused", "fuse", "min_max", "rank"]
