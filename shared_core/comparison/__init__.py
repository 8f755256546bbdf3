"""Does another order of the passages help? Compares strategies on your own questions."""

from __future__ import annotations

from shared_core.comparison.comparison import Comparison
from shared_core.comparison.grading import Judge
from shared_core.comparison.job import ComparisonJob, ComparisonPlan
from shared_core.comparison.pipelines import PIPELINES
from shared_core.comparison.questions import ComparisonData, Question, RankedCase
from shared_core.comparison.reading import read_comparison
from shared_core.comparison.records import (
    Estimate,
    Failure,
    SettingResult,
    StrategyResult,
    Verdict,
)
from shared_core.comparison.report.html import to_html
from shared_core.comparison.report.markdown import to_markdown
from shared_core.comparison.result import ComparisonResult
from shared_core.comparison.strategies import STRATEGIES, Strategy

__all__ = [
    "PIPELINES",
    "STRATEGIES",
    "Comparison",
    "ComparisonData",
    "ComparisonJob",
    "ComparisonPlan",
    "ComparisonResult",
    "Estimate",
    "Failure",
    "Judge",
    "Question",
    "RankedCase",
    "SettingResult",
    "Strategy",
    "StrategyResult",
    "Verdict",
    "read_comparison",
    "to_html",
    "to_markdown",
]
