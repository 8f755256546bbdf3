"""Does another order of the passages help? Strategies compared on one's own questions."""

from __future__ import annotations

from shared_core.comparison.comparing import Comparison
from shared_core.comparison.grading import Judge
from shared_core.comparison.html import to_html
from shared_core.comparison.job import ComparisonJob
from shared_core.comparison.markdown import to_markdown
from shared_core.comparison.pipelines import PIPELINES
from shared_core.comparison.plan import ComparisonPlan
from shared_core.comparison.questions import ComparedQuestion, ComparisonData
from shared_core.comparison.reading import read_comparison
from shared_core.comparison.records import (
    AskedQuestion,
    Estimate,
    Failure,
    SettingResult,
    StrategyResult,
    Verdict,
)
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.strategies import STRATEGIES
from shared_core.comparison.strategy import RankedCase, Strategy

__all__ = [
    "PIPELINES",
    "STRATEGIES",
    "AskedQuestion",
    "ComparedQuestion",
    "Comparison",
    "ComparisonData",
    "ComparisonJob",
    "ComparisonPlan",
    "ComparisonResult",
    "Estimate",
    "Failure",
    "Judge",
    "RankedCase",
    "SettingResult",
    "Strategy",
    "StrategyResult",
    "Verdict",
    "read_comparison",
    "to_html",
    "to_markdown",
]
