"""Does another order of the passages help? Compares strategies on your own questions."""

from __future__ import annotations

from shared_core.comparison.comparison import Comparison
from shared_core.comparison.html_report import to_html
from shared_core.comparison.job import ComparisonPlan
from shared_core.comparison.questions import ComparisonData, Question
from shared_core.comparison.reading import read_comparison
from shared_core.comparison.result import ComparisonResult, Failure
from shared_core.comparison.retrieval import PIPELINES
from shared_core.comparison.strategies import STRATEGIES
from shared_core.comparison.text_report import to_markdown

__all__ = [
    "PIPELINES",
    "STRATEGIES",
    "Comparison",
    "ComparisonData",
    "ComparisonPlan",
    "ComparisonResult",
    "Failure",
    "Question",
    "read_comparison",
    "to_html",
    "to_markdown",
]
