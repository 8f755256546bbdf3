"""The distracting effect: how far a passage that holds no answer tempts a model to give one.

PositionalBias, section 3, after Amiraz et al. (2025): ``DE_q(p) = 1 - P(NO-RESPONSE | q, p)`` for
an irrelevant passage p, and 0 for a relevant one. Higher is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.generation.responses import Request, Response
from shared_core.generation.templates import ABSTENTION

HARD = 0.8
"""Above this a passage is a hard distractor (PositionalBias, section 4)."""

WEAK = 0.2
"""Below this an irrelevant passage is a weak distractor (PositionalBias, section 4)."""


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
    relevant: Sequence[Sequence[bool]], effects: Sequence[Sequence[float]], ks: Sequence[int]
) -> dict[str, Scores]:
    """Return measures of the top k, question by question (PositionalBias, Fig. 1, Table 4).

    ``HITS@k``: 1 if a relevant passage is among them; ``Precision@k``: the share of k that is
    relevant; ``MaxDE@k`` and ``MeanDE@k``: the largest and the mean effect among them, relevant
    ones counting 0; ``Hard@k``: 1 if a hard distractor is among them. The paper prints means over
    the questions, the last one as a percentage in Table 4.

    Parameters
    ----------
    relevant
        Of each question, whether the passages are relevant, the best ranked first.
    effects
        Their distracting effects, in [0, 1], 0 for relevant ones.
    ks
        Depths, >= 1.

    Returns
    -------
    dict of str to ndarray
        By name, as ``MaxDE@10``; shape (n,), in [0, 1], in the order of the questions.
    """
    measured: dict[str, Scores] = {}
    for k in ks:
        top = [tuple(row[:k]) or (0.0,) for row in effects]
        measured[f"HITS@{k}"] = np.array([float(any(row[:k])) for row in relevant])
        measured[f"Precision@{k}"] = np.array([sum(row[:k]) / k for row in relevant])
        measured[f"MaxDE@{k}"] = np.array([max(row) for row in top])
        measured[f"MeanDE@{k}"] = np.array([sum(row) / len(row) for row in top])
        measured[f"Hard@{k}"] = (measured[f"MaxDE@{k}"] > HARD).astype(np.float64)
    return measured


def abstention_request(prompt: str, *, exact: bool) -> Request:
    """Return the request that tests for abstention: for its probability, or for an answer."""
    return (prompt, f" {ABSTENTION}") if exact else (prompt,)


def effect_of(response: Response) -> float:
    """Return 1 less the probability of the abstention, or 1 unless the answer abstains."""
    if isinstance(response, str):
        return float(ABSTENTION.casefold() not in response.casefold())
    return max(0.0, 1.0 - math.exp(sum(response)))
