"""Distraction-aware placement where the truth is planted: what it gains, and on what condition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.distraction import distracting_effects
from instruments.planted import planted_rankings
from shared_core import PositionProfile, Probe
from shared_core.evaluation import GRADERS
from shared_core.placement import MaxRelevance, distraction_placement
from shared_core.sensitivity import ANSWER
from tests.core.attention.readers import reader

RANKINGS = planted_rankings(60, seed=1)
K = len(RANKINGS[0].passages)


@cache
def profile() -> PositionProfile:
    """Probe it on other questions."""
    others = planted_rankings(30, hard=1, weak=K - 1, seed=2)
    questions = [ranking.probe_question for ranking in others]
    return Probe(k=K, grader="exact", looks=1).run(reader(), questions)


def exact_match(orders: Sequence[tuple[int, ...]]) -> float:
    """Ask for the answers over the passages in these orders."""
    prompts = [
        ANSWER.render([ranking.texts[at] for at in order], ranking.question)
        for ranking, order in zip(RANKINGS, orders, strict=True)
    ]
    answers = reader().generate(prompts)
    grade = GRADERS["exact"]
    return float(np.mean([grade(a, [r.answer]) for a, r in zip(answers, RANKINGS, strict=True)]))


def test_the_score_does_not_tell_a_hard_distractor_from_the_gold() -> None:
    """Else a placement by rank alone would need no distracting effect."""
    assert {ranking.gold_rank for ranking in RANKINGS} == {0, 1, 2}
    for ranking in RANKINGS:
        assert ranking.scores == sorted(ranking.scores, reverse=True)
        kinds = [passage.kind for passage in ranking.passages]
        assert sorted(kinds[:3]) == ["gold", "hard", "hard"]
        assert {*kinds[3:]} == {"weak"}
        with_answer = [ranking.answer in text for text in ranking.texts]
        assert with_answer == [*ranking.relevant]


def test_weighing_known_harm_beats_placing_by_rank_on_the_reader_of_the_edges() -> None:
    """On more than half of the questions: by rank, a distractor may have the slot read best."""
    aware = [distraction_placement(r.scores, r.true_effects, profile()) for r in RANKINGS]
    by_rank = [MaxRelevance()(K, profile())] * len(RANKINGS)
    assert exact_match(aware) > exact_match(by_rank) + 0.5


def test_an_effect_measured_without_judgements_takes_the_gold_for_a_hard_distractor() -> None:
    """Both keep the reader from abstaining, so that the answer goes where it is read least."""
    effects = distracting_effects(reader(), RANKINGS)
    orders = [
        distraction_placement(ranking.scores, row, profile(), harm=2)
        for ranking, row in zip(RANKINGS, effects, strict=True)
    ]
    accuracy = profile().accuracy_at(K)
    for ranking, order in zip(RANKINGS, orders, strict=True):
        assert accuracy[order.index(ranking.gold_rank)] <= np.median(accuracy)
