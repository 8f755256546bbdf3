"""How answers are judged, and how sure the judgement is: pure functions of outcomes."""

from __future__ import annotations

from shared_core.evaluation.graders import GRADERS, Grader, grade, resolve_grader
from shared_core.evaluation.interim import InterimAnalyses
from shared_core.evaluation.intervals import (
    bootstrap_interval,
    mean_interval,
    paired_difference_interval,
)
from shared_core.evaluation.paired_differences import complete_cases
from shared_core.evaluation.power import minimum_detectable_effect
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.evaluation.significance import PairedComparison, compare_paired

__all__ = [
    "GRADERS",
    "Grader",
    "InterimAnalyses",
    "PairedComparison",
    "bootstrap_interval",
    "compare_paired",
    "complete_cases",
    "grade",
    "mean_interval",
    "minimum_detectable_effect",
    "paired_difference_interval",
    "resolve_grader",
    "retrieval_measures",
]
