"""How answers are judged, and how sure the judgement is: pure functions of outcomes."""

from __future__ import annotations

from shared_core.evaluation.graders import GRADERS, grade
from shared_core.evaluation.intervals import bootstrap_interval, paired_difference_interval
from shared_core.evaluation.paired_differences import complete_cases
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.evaluation.significance import compare_paired

__all__ = [
    "GRADERS",
    "bootstrap_interval",
    "compare_paired",
    "complete_cases",
    "grade",
    "paired_difference_interval",
    "retrieval_measures",
]
