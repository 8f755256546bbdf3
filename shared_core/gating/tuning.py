"""Choosing policy and threshold by a handful of labelled queries, cross-validated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Scores
from shared_core.checking import check_count
from shared_core.gating.candidates import VectorCandidates
from shared_core.gating.decision import STATISTICS, Policy

LEAST_LABELLED = 5
"""Fewest queries on each side: one for each of the default folds."""


@dataclass(frozen=True, kw_only=True)
class PolicyChoice:
    """A policy with its threshold, and its accuracy on queries it was not chosen by.

    Attributes
    ----------
    policy, threshold
        For `VectorCandidates.with_policy`.
    balanced_accuracy
        Mean of recall and specificity on the held-out folds, in [0, 1]; 0.5 is chance.
    uncorrected
        The same for the given gate with its present policy and threshold.
    """

    policy: Policy
    threshold: float
    balanced_accuracy: float
    uncorrected: float


def choose_policy(
    candidates: VectorCandidates,
    positives: npt.ArrayLike,
    negatives: npt.ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
) -> PolicyChoice:
    """Choose a policy and threshold by the similarities of labelled queries.

    They are for a gate that decides by similarity alone: fit it with ``coverage=False``.

    The best balanced accuracy is reached at one similarity, which every policy can be moved to by
    a threshold. The policy that needs the smallest threshold is chosen, because its edge follows
    the corpus as that grows and the threshold does not.

    Parameters
    ----------
    candidates
        A fitted gate.
    positives, negatives
        Highest similarities of queries that the corpus answers, and of queries it does not; at
        least 5 of each.
    folds
        Folds of the cross-validation, >= 2; fewer are used if a side has fewer queries.
    seed
        Seed of the folds.

    Raises
    ------
    ValueError
        If there are too few queries, `folds` is below 2, or a similarity is not finite.
    """
    scores, labels = _join_labelled(positives, negatives)
    check_count(folds, "folds", 2)
    check_count(seed, "seed", 0)
    edges = _edges(candidates)
    parts = _folds(labels, folds, seed)
    held_out = np.zeros(labels.size, np.bool_)
    for part in range(parts.max() + 1):
        rest = parts != part
        policy, threshold = _best_policy(scores[rest], labels[rest], edges)
        held_out[~rest] = scores[~rest] >= edges[policy] + threshold
    policy, threshold = _best_policy(scores, labels, edges)
    now = scores >= candidates.levels.edge + candidates.threshold
    return PolicyChoice(
        policy=policy,
        threshold=threshold,
        balanced_accuracy=_balanced_accuracy(held_out, labels),
        uncorrected=_balanced_accuracy(now, labels),
    )


def _join_labelled(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> tuple[Scores, Bools]:
    sides = {"positives": positives, "negatives": negatives}
    arrays = [np.asarray(values, np.float64).reshape(-1) for values in sides.values()]
    for name, values in zip(sides, arrays, strict=True):
        if values.size < LEAST_LABELLED:
            raise ValueError(f"{name}: at least {LEAST_LABELLED} queries, got {values.size}")
        if (bad := values[~np.isfinite(values)]).size:
            raise ValueError(f"{name}: similarities must be finite, got {bad[0]}")
    labels = np.repeat([True, False], [values.size for values in arrays])
    return np.concatenate(arrays), labels


def _edges(candidates: VectorCandidates) -> dict[Policy, float]:
    """Return the edge of each policy that the fit has enough data for."""
    edges: dict[Policy, float] = {candidates.policy: candidates.levels.edge}
    for policy in STATISTICS:
        with suppress(ValueError):
            edges[policy] = candidates.with_policy(policy).levels.edge
    return edges


def _folds(labels: Bools, folds: int, seed: int) -> npt.NDArray[np.intp]:
    """Distribute both sides evenly over the folds."""
    rng = np.random.default_rng(seed)
    smaller = int(min(labels.sum(), (~labels).sum()))
    parts = np.zeros(labels.size, np.intp)
    for side in (labels, ~labels):
        rows = rng.permutation(np.flatnonzero(side))
        parts[rows] = np.arange(rows.size) % min(folds, smaller)
    return parts


def _best_policy(scores: Scores, labels: Bools, edges: dict[Policy, float]) -> tuple[Policy, float]:
    split = _best_split(scores, labels)
    policy = min(edges, key=lambda policy: abs(split - edges[policy]))
    return policy, split - edges[policy]


def _best_split(scores: Scores, labels: Bools) -> float:
    """Return the similarity with the best balanced accuracy; of several the middle one."""
    values = np.unique(scores)
    splits = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2])
    positives, negatives = np.sort(scores[labels]), np.sort(scores[~labels])
    missed = np.searchsorted(positives, splits) / positives.size
    refused = np.searchsorted(negatives, splits) / negatives.size
    balanced = refused - missed
    best = np.flatnonzero(balanced >= balanced.max() - 1e-12)
    return float(splits[best[best.size // 2]])


def _balanced_accuracy(retrieved: Bools, labels: Bools) -> float:
    return float((retrieved[labels].mean() + (~retrieved[~labels]).mean()) / 2)
