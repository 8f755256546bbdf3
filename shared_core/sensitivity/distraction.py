"""Asks a model for the distracting effect of passages: how far each tempts it to give an answer.

PositionalBias, section 3, after Amiraz et al. (2025); `shared_core.evaluation.distraction` has the
measures that are made of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from shared_core.checking import check_count
from shared_core.evaluation.distraction import JudgedRanking
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.journal import Journal
from shared_core.generation.models import ScoringModel, as_generator
from shared_core.generation.templates import ABSTAIN, ABSTENTION, PromptTemplate


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
