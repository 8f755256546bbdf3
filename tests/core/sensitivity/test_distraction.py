"""The distracting effect: exact where the model tells it, counted elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from shared_core.generation import Journal
from shared_core.sensitivity import (
    JudgedRanking,
    distracting_effect,
    distraction_measures,
    distractor_kind,
)


class Abstainer:
    """Abstains with the probability that the passage names, and samples by a fixed sequence."""

    name = "abstainer"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate(self, prompts: Sequence[str]) -> list[str]:
        answers = []
        for prompt in prompts:
            self.asked.append(prompt)
            times = self.asked.count(prompt)
            answers.append("no-response." if times <= 10 * _probability(prompt) else "42")
        return answers


class ScoringAbstainer(Abstainer):
    """Tells the probability, in two tokens."""

    name = "scoring-abstainer"

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[list[float]]:
        assert {*continuations} == {" NO-RESPONSE"}
        self.asked += prompts
        return [[math.log(_probability(prompt)) / 2] * 2 for prompt in prompts]


def _probability(prompt: str) -> float:
    return float(prompt.partition("abstain at ")[2].split()[0])


RANKINGS = [
    JudgedRanking(
        question="How many?",
        passages=("abstain at 0.1 ", "the answer", "abstain at 0.7 "),
        relevant=(False, True, False),
    ),
    JudgedRanking(question="How far?", passages=("abstain at 0.9 ",), relevant=(False,)),
]


def test_a_model_that_tells_probabilities_gives_the_effect_exactly() -> None:
    """1 - P(abstain) of one irrelevant passage, all of the abstention's tokens together."""
    model = ScoringAbstainer()
    assert distracting_effect(model, RANKINGS) == [
        pytest.approx((0.9, 0.0, 0.3)),
        pytest.approx((0.1,)),
    ]
    assert len(model.asked) == 3
    assert not any("the answer\n" in prompt for prompt in model.asked)
    assert all(prompt.count("abstain at") == 1 for prompt in model.asked)


def test_of_a_model_that_only_answers_the_share_of_samples_is_counted() -> None:
    """Ten answers, of which as many abstain as the passage says."""
    assert distracting_effect(Abstainer(), RANKINGS, samples=10) == [
        pytest.approx((0.9, 0.0, 0.3)),
        pytest.approx((0.1,)),
    ]
    assert distracting_effect(Abstainer(), RANKINGS) == [(0.0, 0.0, 0.0), (0.0,)]
    assert distracting_effect(ScoringAbstainer(), RANKINGS, samples=10)[1] == pytest.approx((0.1,))
    with pytest.raises(ValueError, match="samples must be an integer >= 1, got 0"):
        distracting_effect(Abstainer(), RANKINGS, samples=0)


def test_an_interrupted_measurement_goes_on_with_every_sample_kept(tmp_path: Path) -> None:
    """The samples of one prompt are different answers, and none is asked for twice."""
    first = Abstainer()
    journal = Journal(tmp_path / "answers.jsonl")
    counted: list[int] = []
    effects = distracting_effect(
        first, RANKINGS, samples=5, journal=journal, on_answer=counted.append
    )
    assert sum(counted) == 15
    assert effects == [(0.8, 0.0, 0.0), (0.0,)]
    again = Abstainer()
    kept = Journal(tmp_path / "answers.jsonl")
    assert distracting_effect(again, RANKINGS, samples=5, journal=kept) == effects
    assert again.asked == []


MEASURED = [
    *RANKINGS,
    JudgedRanking(question="Who?", passages=("he",), relevant=(True,)),
    JudgedRanking(question="Who else?", passages=(), relevant=()),
]


def test_kinds_of_distractors() -> None:
    """Hard above 0.8, weak below 0.2; the bounds are neither."""
    kinds = [distractor_kind(effect) for effect in (0.0, 0.19, 0.2, 0.8, 0.81, 1.0)]
    assert kinds == ["weak", "weak", "between", "between", "hard", "hard"]
    with pytest.raises(ValueError, match=r"\[0, 1\], got 1\.1"):
        distractor_kind(1.1)


def test_measures_of_the_top_k_by_hand() -> None:
    """Places left empty count: one relevant passage is a third of three. Hard is above 0.8."""
    effects = [(0.9, 0.0, 0.3), (0.8,), (0.0,), ()]
    measured = distraction_measures(MEASURED, effects, ks=(1, 3))
    assert {name: values.tolist() for name, values in measured.items()} == {
        "HITS@1": [0.0, 0.0, 1.0, 0.0],
        "Precision@1": [0.0, 0.0, 1.0, 0.0],
        "MaxDE@1": [0.9, 0.8, 0.0, 0.0],
        "MeanDE@1": [0.9, 0.8, 0.0, 0.0],
        "Hard@1": [1.0, 0.0, 0.0, 0.0],
        "HITS@3": [1.0, 0.0, 1.0, 0.0],
        "Precision@3": [pytest.approx(1 / 3), 0.0, pytest.approx(1 / 3), 0.0],
        "MaxDE@3": [0.9, 0.8, 0.0, 0.0],
        "MeanDE@3": [pytest.approx(0.4), 0.8, 0.0, 0.0],
        "Hard@3": [1.0, 0.0, 0.0, 0.0],
    }


def test_what_cannot_be_measured_is_refused() -> None:
    """With the value that is wrong."""
    with pytest.raises(ValueError, match="'Who' has 1 passages and 2 judgements"):
        JudgedRanking(question="Who", passages=("a",), relevant=(True, False))
    with pytest.raises(ValueError, match="blank"):
        JudgedRanking(question=" ", passages=(), relevant=())
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        distraction_measures(MEASURED[:1], [(0, 0, 0)], ks=[0])
    with pytest.raises(
        ValueError,
        match="one value for each passage, got 2 for the 3 passages of question 'How many",
    ):
        distraction_measures(MEASURED[:1], [(0, 0)], ks=[1])
    with pytest.raises(ValueError, match="no rankings"):
        distraction_measures([], [], ks=[1])
