"""Retrieval measures: known values, in the order of the questions, 0 where nothing was found."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("ir_measures")

from shared_core.evaluation import retrieval_measures

RELEVANT = {"second": {"b": 1}, "first": {"x": 1}, "lost": {"z": 1}, "not asked": {"a": 1}}
RANKINGS = {"second": ["a", "b", "c"], "lost": [], "first": ["x", "y"]}


def test_one_relevant_passage_by_hand() -> None:
    """Rank 2, not found, rank 1."""
    measured = retrieval_measures(RANKINGS, RELEVANT)
    assert {name: values.tolist() for name, values in measured.items()} == {
        "nDCG@10": [pytest.approx(1 / math.log2(3)), 0.0, 1.0],
        "hit@1": [0.0, 0.0, 1.0],
        "hit@10": [1.0, 0.0, 1.0],
        "MRR": [0.5, 0.0, 1.0],
    }


def test_the_order_given_counts_and_not_that_of_the_ids() -> None:
    """trec_eval breaks ties by id; ranks have none."""
    for ranking, expected in ((["z", "a"], 1.0), (["a", "z"], 0.5)):
        assert retrieval_measures({"q": ranking}, {"q": {"z": 1}}, ["MRR"])["MRR"] == [expected]


def test_two_names_of_one_measure_both_have_its_value() -> None:
    """What trec_eval calls RR, the papers call MRR."""
    for names in (("MRR", "RR"), ("RR", "MRR"), ("hit@1", "Success@1")):
        measured = retrieval_measures({"q": ["a"]}, {"q": {"a": 1}}, names)
        assert {name: values.tolist() for name, values in measured.items()} == {
            name: [1.0] for name in names
        }
