"""Relevance of documents: each estimator by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.attention.estimators import (
    ESTIMATORS,
    AnswerTokens,
    CalibratedQuery,
    Calibration,
    Estimator,
    FirstToken,
    ProducerTokens,
    ranking_of,
)

SCORES = [9.0, 1.0, 2.0, 3.0, 4.0, 9.0, 0.5, 1.5]
SPANS = [(1, 2), (2, 5), (6, 8)]


def test_each_estimator_says_what_it_reads() -> None:
    """GoodPositions, section 5.1: by name, rows, layers, and whether an empty question is asked."""
    assert {
        name: (each.rows, each.layers, each.calibrated) for name, each in ESTIMATORS.items()
    } == {
        "answer": ("answer", "upper", False),
        "producer": ("producer", "upper", False),
        "attention_sorting": ("first", "all", False),
        "icr": ("query", "all", True),
    }
    assert all(each.__doc__ for each in ESTIMATORS.values())


@pytest.mark.parametrize("estimator", [AnswerTokens(), ProducerTokens(), FirstToken()])
def test_means_over_the_tokens_of_each_document(estimator: Estimator) -> None:
    """Eq. 2."""
    assert estimator(SCORES, SPANS).tolist() == [1.0, 3.0, 1.0]


def test_icr_sums_what_the_question_adds() -> None:
    """Token by token, over documents that stand elsewhere in the prompt without a question."""
    calibration = Calibration(
        token_scores=[0.5, 1.0, 1.0, 1.0, 0.0, 2.0], spans=[(0, 1), (1, 4), (4, 6)]
    )
    found = CalibratedQuery()(SCORES, SPANS, calibration)
    assert found.tolist() == [0.5, 6.0, 0.0]  # 1-.5; 2-1 + 3-1 + 4-1; .5-0 + 1.5-2


def test_icr_drops_tokens_far_below_the_rest_of_their_document() -> None:
    """Nine tokens of 1 and one of -9: mean 0, deviation 3, so -9 goes; -5.9 stays, as does 11."""
    empty = Calibration(token_scores=np.zeros(10), spans=[(0, 10)])

    def score(last: float) -> float:
        return float(CalibratedQuery()([1.0] * 9 + [last], [(0, 10)], empty)[0])

    assert score(-9) == 9
    assert score(11) == 20
    few = Calibration(token_scores=np.zeros(4), spans=[(0, 4)])
    assert CalibratedQuery()([1.0, 1.0, 1.0, -5.9], [(0, 4)], few)[0] == pytest.approx(-2.9)


def test_icr_keeps_tokens_that_do_not_deviate_at_all() -> None:
    """Equal scores, or a single token: nothing is below."""
    empty = Calibration(token_scores=np.zeros(5), spans=[(0, 4), (4, 5)])
    found = CalibratedQuery()([0.1] * 5, [(0, 4), (4, 5)], empty)
    assert found == pytest.approx([0.4, 0.1])


@given(st.lists(st.integers(0, 5).map(float), max_size=12))
def test_a_ranking_is_stable(scores: list[float]) -> None:
    """Highest first; equal ones by input index; plain ints."""
    ranking = ranking_of(scores)
    assert list(ranking) == sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert {type(document) for document in ranking} <= {int}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CalibratedQuery()(SCORES, SPANS), "give as calibration .* that asks 'N/A'"),
        (
            lambda: AnswerTokens()(SCORES, SPANS, Calibration(token_scores=SCORES, spans=SPANS)),
            "AnswerTokens is not calibrated: leave calibration out",
        ),
        (
            lambda: CalibratedQuery()(
                SCORES, SPANS, Calibration(token_scores=SCORES, spans=SPANS[:2])
            ),
            r"of documents of \[1, 3\] tokens, these have \[1, 3, 2\]; render the same",
        ),
        (lambda: FirstToken()(SCORES, [(3, 3)]), r"span 0 is \[3, 3\), which is empty"),
        (lambda: FirstToken()([math.nan], [(0, 1)]), "must be finite, got nan"),
        (lambda: ranking_of([1.0, math.nan]), "must be finite, got nan at position 1"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    """The message names the value and the way out."""
    with pytest.raises(ValueError, match=message):
        call()
