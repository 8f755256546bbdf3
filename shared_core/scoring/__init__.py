"""Scoring: normalisation, and fusion of the two legs."""

from __future__ import annotations

from shared_core.scoring.ranking import rank

__all__ = ["rank"]
