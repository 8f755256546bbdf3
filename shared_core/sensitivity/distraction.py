"""The distracting effect: how far a passage that holds no answer tempts a model to give one.

PositionalBias, section 3, after Amiraz et al. (2025): ``DE_q(p) = 1 - P(NO-RESPONSE | q, p)`` for
an irrelevant passage p, and 0 for a relevant one. Higher is worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.checking import check_count
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.journal import Journal
from shared_core.generation.models import ScoringModel, as_generator
from shared_core.generation.templates import ABSTAIN, ABSTENTION, PromptTemplate

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


def distracting_effect(
    model: object,
    rankings: Sequence[JudgedRanking],
    *,
    samples: int | None = None,
    template: PromptTemplate = ABSTAIN,
    journal: Journal | None = None,
    attempts: int = 8,
    on_answer: Callable[[int], None] | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> list[tuple[float, ...]]:
    """Return the distracting effect of each passage, in [0, 1]; 0 for the relevant ones.

    The model is shown one passage at a time, and asked about irrelevant ones only.

    Parameters
    ----------
    model
        A `Generator`, a LangChain or LlamaIndex model, or a function from prompts to answers.
    rankings
        Questions with their passages.
    samples
        Answers per passage, >= 1; the effect is the share that does not abstain. By default the
        probability of abstention where the model gives it (`ScoringModel`), else one answer. More
        than one is informative only for a model that samples its answers.
    template
        The prompt. It must allow the model to abstain by saying `ABSTENTION`.
    journal
        Where every answer is saved at once, so that a second run does not ask again.
    attempts
        Attempts at a call that fails for a temporary reason, >= 1.
    on_answer, on_wait
        As in `ModelClient.answers`.

    Raises
    ------
    ValueError
        If an option is out of range.
    GenerationError
        If the model fails for good.
    """
    if samples is not None:
        check_count(samples, "samples")
    generator = as_generator(model, saved=journal is not None)
    exact = samples is None and isinstance(generator, ScoringModel)
    client = ModelClient.of(generator, journal=journal, attempts=attempts)
    requests = [
        abstention_request(template.render([passage], ranking.question), exact=exact)
        for ranking in rankings
        for passage, relevant in zip(ranking.passages, ranking.relevant, strict=True)
        if not relevant
    ]
    drawn = [
        replace(client, repetition=at).answers(requests, on_answer=on_answer, on_wait=on_wait)
        for at in range(1, (samples or 1) + 1)
    ]
    effects = (sum(map(effect_of, each)) / len(each) for each in zip(*drawn, strict=True))
    return [
        tuple(0.0 if relevant else next(effects) for relevant in ranking.relevant)
        for ranking in rankings
    ]


def abstention_request(prompt: str, *, exact: bool) -> Request:
    """Return the request that tests for abstention: for its probability, or for an answer."""
    return (prompt, f" {ABSTENTION}") if exact else (prompt,)


def effect_of(response: Response) -> float:
    """Return 1 less the probability of the abstention, or 1 unless the answer abstains."""
    if isinstance(response, str):
        return float(ABSTENTION.casefold() not in response.casefold())
    return max(0.0, 1.0 - math.exp(sum(response)))
