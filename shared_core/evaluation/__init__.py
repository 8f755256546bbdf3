"""How answers are judged, and how sure the judgement is: pure functions of outcomes."""

from __future__ import annotations

from shared_core.evaluation.complete_cases import complete_cases
from shared_core.evaluation.distraction import (
    JudgedRanking,
    distraction_measures,
    distractor_kind,
)
from shared_core.evaluation.graders import GRADERS, Grader, grade, resolve_grader
from shared_core.evaluation.interim import InterimAnalyses, interim_decision
from shared_core.evaluation.intervals import (
    bootstrap_interval,
    independent_interval,
    mean_interval,
    paired_difference_interval,
)
from shared_core.evaluation.permutation import permutation_p_value
from shared_core.evaluation.power import (
    fewest_questions,
    minimum_detectable_effect,
    questions_needed,
)
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.evaluation.significance import (
    PairedComparison,
    compare_paired,
    holm,
    paired_p_value,
)
from shared_core.evaluation.spans import (
    Extent,
    reference_coverage,
    rescued_by_neighbour,
    span_recall,
)

__all__ = [
    "GRADERS",
    "Extent",
    "Grader",
    "InterimAnalyses",
    "JudgedRanking",
    "PairedComparison",
    "bootstrap_interval",
    "compare_paired",
    "complete_cases",
    "distraction_measures",
    "distractor_kind",
    "fewest_questions",
    "grade",
    "holm",
    "independent_interval",
    "interim_decision",
    "mean_interval",
    "minimum_detectable_effect",
    "paired_difference_interval",
    "paired_p_value",
    "permutation_p_value",
    "questions_needed",
    "reference_coverage",
    "rescued_by_neighbour",
    "resolve_grader",
    "retrieval_measures",
    "span_recall",
]
