"""The strategy that weighs the retriever's score against the distracting effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shared_core import Journal, PositionProfile
from shared_core.comparison import Comparison
from shared_core.generation.templates import ABSTAIN, PromptTemplate
from tests.core.comparison.making import codes, last, shown

PROFILE = PositionProfile(model="mine", accuracy=(0.1, 0.2, 0.3, 0.9))
ASKED = Comparison(ks=(4,), strategies=("distraction_aware",), profile=PROFILE, shuffles=1)


def effect_of_second(number: int, place: int) -> float:
    """Passage 1 is a hard distractor to every question."""
    return 0.95 if place == 1 else 0.05


class Scoring:
    """Answers with the last code; tells by rule how probable it is to abstain of one passage."""

    name = fingerprint = "scoring"
    batch_size = 4

    def __init__(self, effect: Callable[[int, int], float] = effect_of_second) -> None:
        self.effect = effect
        self.read: list[str] = []

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return last(prompts)

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[list[float]]:
        assert {*continuations} == {" NO-RESPONSE"}
        self.read += prompts
        return [[math.log(1 - self._effect(prompt))] for prompt in prompts]

    def _effect(self, prompt: str) -> float:
        number, (code,) = shown(prompt)
        return self.effect(number, int(code.partition("x")[2]))


def test_utility_is_relevance_by_rank_less_the_effect_where_there_are_no_scores() -> None:
    """1, .75, .5, .25 less .05, .95, .05, .05; the last slot is read best, the first least."""
    longest = PositionProfile(model="mine", accuracy=np.linspace(0.9, 0.1, 10), tokens=200)
    both = PositionProfile.of_lengths([replace(PROFILE, tokens=20), longest])
    result = replace(ASKED, profile=both).run(Scoring(), codes(10))  # the shorter counts
    (strategy,) = result.settings[0].strategies[2:]
    assert strategy.name == "distraction_aware"
    assert strategy.orders == (((1, 3, 2, 0),),) * 10
    assert np.mean(strategy.outcomes["em"]) == 1
    assert result.profile == "mine"


def test_relevance_is_the_score_of_the_pipeline_where_there_is_one() -> None:
    """Three passages nearly alike and a bad one: an effect of a half outweighs the rank."""

    def scores(question: str, texts: Sequence[str]) -> list[float]:
        return [10.0, 9.9, 9.8, 0.0]

    model = Scoring(lambda number, place: 0.5 if place == 0 else 0.0)
    comparison = replace(ASKED, pipelines=("given", "given+rerank"), reranker=scores)
    given, reranked = comparison.run(model, codes(4)).settings
    assert given.passages == reranked.passages
    assert given.strategies[2].orders[0] == ((3, 2, 0, 1),)
    assert reranked.strategies[2].orders[0] == ((3, 0, 2, 1),)


def test_every_pipeline_that_scores_passes_its_scores_on() -> None:
    """Best first, one a passage."""
    data = codes(5)
    alone = (replace(p, metadata={"doc_id": p.id, "chunk_id": 0}) for p in data.passages)
    comparison = Comparison(
        ks=(3,),
        pipelines=("sparse", "dense", "hybrid", "given+spans", "given+rerank"),
        embed=lambda texts: [[text.count(char) + 0.1 for char in "01234x"] for text in texts],
        reranker=lambda question, texts: [*map(float, range(len(texts)))],
    )
    for setting in comparison.job(last, replace(data, passages=tuple(alone))).settings:
        for case in setting.cases:
            assert case.scores is not None
            assert list(case.scores) == sorted(case.scores, reverse=True)
            assert len(case.scores) == len(case.documents) == 3


@pytest.mark.parametrize("kept", [False, True])
def test_a_passage_is_read_once_for_all_pipelines_and_numbers(tmp_path: Path, kept: bool) -> None:
    """With a journal or without; by itself, with leave to abstain; and the progress says so."""
    journal = Journal(tmp_path / "answers") if kept else None
    comparison = replace(ASKED, pipelines=("given", "sparse"), ks=(2, 3, 4))
    model, data = Scoring(), codes(6)
    job = comparison.job(model, data, journal=journal)
    plan = job.plan()
    assert model.read == []
    told: list[int] = []
    job.run(on_answer=told.append)
    assert len(model.read) == len({*model.read}) == 6 * 4
    assert {ABSTAIN.render([p.text], f"What has thing {p.id[0]}?") for p in data.passages} == {
        *model.read
    }
    assert plan.calls - 6 * 6 <= sum(told) <= plan.calls
    assert job.plan().calls == (0 if kept else plan.calls)


@pytest.mark.parametrize("changed", ["a question more", "another prompt"])
def test_asked_afresh_nothing_stale_counts_although_passages_have_still_to_be_read(
    tmp_path: Path, changed: str
) -> None:
    """Its prompts are not all known before; a former model's answers in them are no finding."""
    comparison, data = ASKED, codes(10)
    if changed == "a question more":
        data = codes(11)
    else:
        comparison = replace(ASKED, abstain=PromptTemplate(f"New. {ABSTAIN.text}"))
    former = Scoring()
    former.generate = lambda prompts: ["no idea"] * len(prompts)  # type: ignore[method-assign]
    ASKED.run(former, codes(10), journal=Journal(tmp_path / "answers"))
    journal = Journal(tmp_path / "answers", fresh=True)
    result = comparison.run(Scoring(), data, journal=journal)
    (strategy,) = result.settings[0].strategies[2:]
    assert strategy.outcomes["em"] == (1.0,) * len(data.questions)


def test_a_passage_that_the_model_fails_on_costs_its_question_alone() -> None:
    """It is left out of all strategies, with the reason."""

    def effect(number: int, place: int) -> float:
        if (number, place) == (3, 2):
            raise RuntimeError("too long")
        return 0.1

    (failure,) = ASKED.run(Scoring(effect), codes(20)).settings[0].failures
    assert (failure.question, failure.strategy) == (3, "distraction_aware")
    assert failure.reason == "RuntimeError: too long"


def test_a_model_that_only_answers_and_a_missing_profile_are_refused_by_the_job() -> None:
    """Each by name, before anything is asked."""
    with pytest.raises(ValueError, match="from a local model, and 'last' is not one"):
        ASKED.job(last, codes(3))
    with pytest.raises(ValueError, match="'distraction_aware' needs the model's position profile"):
        replace(ASKED, profile=None).job(Scoring(), codes(3))
    distraction = PositionProfile(model="mine", distraction=(0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match="holds no accuracy"):
        replace(ASKED, profile=distraction).job(Scoring(), codes(3))
