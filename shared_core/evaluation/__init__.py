"""How answers are judged, and how sure the judgement is."""

from __future__ import annotations

from shared_core.evaluation.answers import GRADERS, Grader, grade, resolve_grader
from shared_core.evaluation.intervals import (
    bootstrap_interval,
    independent_interval,
    mean_interval,
    paired_difference_interval,
)
from shared_core.evaluation.sequential import Looks, judge

__all__ = [
    "GRADERS",
    "Grader",
    "Looks",
    "bootstrap_interval",
    "grade",
    "independent_interval",
    "judge",
    "mean_interval",
    "paired_difference_interval",
    "resolve_grader",
]
