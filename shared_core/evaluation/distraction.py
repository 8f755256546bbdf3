"""The distracting effect: how far a passage that holds no answer tempts a model to give one.

PositionalBias, section 3, after Amiraz et al. (2025): ``DE_q(p) = 1 - P(NO-RESPONSE | q, p)`` for
an irrelevant passage p, and 0 for a relevant one. Higher is worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.checking import check_count

HARD = 0.8
"""Above this a passage is a hard distractor (PositionalBias, section 4)."""

WEAK = 0.2
"""Below this an irrelevant passage is a weak distractor (PositionalBias, section 4)."""


@dataclass(frozen=True, kw_only=True)
class JudgedRanking:
    """A question and the passages retrieved for it, judged.

    Attributes
    ----------
    question
        What is asked.
    passages
        Texts, the best ranked first.
    relevant
        Whether each of them holds an answer.

    Raises
    ------
    ValueError
        If the question is blank, or the numbers of judgements and passages differ.
    """

    question: str
    passages: tuple[str, ...]
    relevant: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError(f"question must not be blank, got {self.question!r}")
        if len(self.passages) != len(self.relevant):
            raise ValueError(
                f"question {self.question!r} has {len(self.passages)} passages and "
                f"{len(self.relevant)} judgements"
            )


def distractor_kind(effect: float) -> Literal["hard", "weak", "between"]:
    """Return ``"hard"`` above 0.8 and ``"weak"`` below 0.2 (PositionalBias, section 4).

    Raises
    ------
    ValueError
        If `effect` lies outside [0, 1].
    """
    if not 0 <= effect <= 1:
        raise ValueError(f"a distracting effect lies in [0, 1], got {effect}")
    if effect > HARD:
        return "hard"
    return "weak" if effect < WEAK else "between"


def distraction_measures(
    rankings: Sequence[JudgedRanking], effects: Sequence[Sequence[float]], ks: Sequence[int]
) -> dict[str, Scores]:
    """Return measures of the top k, question by question (PositionalBias, Fig. 1, Table 4).

    ``HITS@k``: 1 if a relevant passage is among them; ``Precision@k``: the share of k that is
    relevant; ``MaxDE@k`` and ``MeanDE@k``: the largest and the mean effect among them, relevant
    ones counting 0; ``Hard@k``: 1 if a hard distractor is among them. The paper prints means over
    the questions, the last one as a percentage in Table 4.

    Parameters
    ----------
    rankings
        Questions with their passages, at least one.
    effects
        What `shared_core.sensitivity.distracting_effect` returns for them.
    ks
        Depths, >= 1.

    Returns
    -------
    dict of str to ndarray
        By name, as ``MaxDE@10``; shape (n,), in [0, 1], in the order of `rankings`.

    Raises
    ------
    ValueError
        If there are no rankings, a depth is below 1, or the effects are not one for each passage.
    """
    if not rankings:
        raise ValueError("no rankings to measure; give at least one")
    for ranking, row in zip(rankings, effects, strict=True):
        if len(row) != len(ranking.passages):
            raise ValueError(
                f"effects must hold one value for each passage, got {len(row)} for the "
                f"{len(ranking.passages)} passages of question {ranking.question!r}"
            )
    measured: dict[str, Scores] = {}
    for k in ks:
        check_count(k, "k")
        relevant = [ranking.relevant[:k] for ranking in rankings]
        top = [tuple(row[:k]) or (0.0,) for row in effects]
        measured[f"HITS@{k}"] = np.array([float(any(row)) for row in relevant])
        measured[f"Precision@{k}"] = np.array([sum(row) / k for row in relevant])
        measured[f"MaxDE@{k}"] = np.array([max(row) for row in top])
        measured[f"MeanDE@{k}"] = np.array([sum(row) / len(row) for row in top])
        measured[f"Hard@{k}"] = (measured[f"MaxDE@{k}"] > HARD).astype(np.float64)
    return measured
