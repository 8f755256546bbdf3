"""The distracting effect: kinds of distractors, and measures of the top k."""

from __future__ import annotations

import pytest

from shared_core.evaluation import JudgedRanking, distraction_measures, distractor_kind

RANKINGS = [
    JudgedRanking(
        question="How many?",
        passages=("abstain at 0.1 ", "the answer", "abstain at 0.7 "),
        relevant=(False, True, False),
    ),
    JudgedRanking(question="How far?", passages=("abstain at 0.9 ",), relevant=(False,)),
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
    measured = distraction_measures(RANKINGS, effects, ks=(1, 3))
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
        distraction_measures(RANKINGS[:1], [(0, 0, 0)], ks=[0])
    with pytest.raises(ValueError, match="shorter"):
        distraction_measures(RANKINGS, [(0, 0, 0)], ks=[1])
    with pytest.raises(
        ValueError,
        match="one value for each passage, got 2 for the 3 passages of question 'How many",
    ):
        distraction_measures(RANKINGS[:1], [(0, 0)], ks=[1])
    with pytest.raises(ValueError, match="no rankings"):
        distraction_measures([], [], ks=[1])
