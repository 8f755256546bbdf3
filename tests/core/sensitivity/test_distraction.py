"""The distracting effect: what it is of one answer, and measured over rankings."""

from __future__ import annotations

import math

import pytest

from shared_core.sensitivity import distraction_measures, distractor_kind
from shared_core.sensitivity.distraction import abstention_request, effect_of


def test_the_effect_is_one_less_the_probability_of_the_abstention() -> None:
    """All of its tokens together; of an answer, whether it does not abstain."""
    assert abstention_request("p", exact=True) == ("p", " NO-RESPONSE")
    assert abstention_request("p", exact=False) == ("p",)
    assert effect_of([math.log(0.1) / 2] * 2) == pytest.approx(0.9)
    assert effect_of([1e-7]) == 0.0
    assert (effect_of("no-response."), effect_of("42")) == (0.0, 1.0)


def test_kinds_of_distractors() -> None:
    """Hard above 0.8, weak below 0.2; the bounds are neither."""
    kinds = [distractor_kind(effect) for effect in (0.0, 0.19, 0.2, 0.8, 0.81, 1.0)]
    assert kinds == ["weak", "weak", "between", "between", "hard", "hard"]


def test_measures_of_the_top_k_by_hand() -> None:
    """Places left empty count: one relevant passage is a third of three. Hard is above 0.8."""
    relevant = [(False, True, False), (False,), (True,), ()]
    effects = [(0.9, 0.0, 0.3), (0.8,), (0.0,), ()]
    measured = distraction_measures(relevant, effects, ks=(3,))
    assert {name: values.tolist() for name, values in measured.items()} == {
        "HITS@3": [1.0, 0.0, 1.0, 0.0],
        "Precision@3": [pytest.approx(1 / 3), 0.0, pytest.approx(1 / 3), 0.0],
        "MaxDE@3": [0.9, 0.8, 0.0, 0.0],
        "MeanDE@3": [pytest.approx(0.4), 0.8, 0.0, 0.0],
        "Hard@3": [1.0, 0.0, 0.0, 0.0],
    }
