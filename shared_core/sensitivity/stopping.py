"""When the answers so far decide the gate, so that no more need be asked."""

from __future__ import annotations

from shared_core.arrays import Scores
from shared_core.evaluation.interim import InterimAnalyses, best_case_interval, interim_decision
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.sensitivity.order_gate import THRESHOLD
from shared_core.sensitivity.position_sensitivity import index_slots, index_statistic


def stop_reason(
    values: Scores,
    *,
    asked: int,
    slots: tuple[int, ...],
    k: int,
    analyses: InterimAnalyses,
    seed: int,
) -> str | None:
    """Return why the probe may stop, as a sentence; None if it goes on or is complete.

    It stops when no answer at all was right, when the interval of the index lies on one side of
    1.0, or when it could not come to lie above it if every remaining question were answered at
    the edges alone. Of fewer than two questions with answers nothing is judged.

    Parameters
    ----------
    values
        Outcomes so far of the questions that were answered, shape (n, len(slots)).
    asked
        Number of questions behind them, those that the model failed on included.
    slots, k
        What was measured, of how many.
    analyses
        When to look, and through how wide an interval.
    seed
        Seed of the resampling.
    """
    if asked >= analyses.total or len(values) < 2:
        return None
    kept = f" ({len(values)} of them answered)" if len(values) < asked else ""
    so_far = f"after {asked} of {analyses.total} questions{kept}"
    if not values.any():
        return f"{so_far} not one answer was right"
    statistic, level = index_statistic(slots, k), analyses.confidence_at
    top, middle, bottom = (slots.index(slot) for slot in index_slots(k))
    best_case = best_case_interval(
        values,
        statistic,
        edges=[top, bottom],
        middle=[middle],
        remaining=analyses.total - asked,
        confidence=level,
        seed=seed,
    )
    interval = bootstrap_interval(values, statistic, confidence=level, seed=seed)
    reason = interim_decision(interval, best_case=best_case, threshold=THRESHOLD)
    return None if reason is None else f"{so_far} {reason}"
