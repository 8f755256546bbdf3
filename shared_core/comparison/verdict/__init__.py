"""What the figures mean for the user, in words: pure functions of the figures."""

from __future__ import annotations

from shared_core.comparison.verdict.overall import overall_verdict
from shared_core.comparison.verdict.setting import VerdictBasis, setting_verdict

__all__ = ["VerdictBasis", "overall_verdict", "setting_verdict"]
