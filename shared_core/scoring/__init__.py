"""Scoring: min-max normalisation, fusion of the two legs, and the query-adaptive weight."""

from __future__ import annotations

from shared_core.scoring.adaptive import auto_alpha
from shared_core.scoring.fusion import Fused, fuse
from shared_core.scoring.normalization import min_max
from shared_core.scoring.ranking import rank

__all__ = ["Fused", "auto_alpha", "fuse", "min_max", "rank"]
