"""Labelled questions choose the fusion weight: held back while there are few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, HybridIndex, Passage
from shared_core.evaluation import retrieval_measures
from shared_core.tuning import WEIGHTS, found_by_weight, ndcg_by_weight, tune
from shared_core.types import Query

from .making import random_vectors

N = 120
QUERIES = [Query(f"about w{at} w{at + 1}", random_vectors(N, seed=1)[at]) for at in range(N)]


def index_of(*, vectors: str) -> HybridIndex:
    """Return passages whose words say which question they answer; so may their vectors."""
    index, rng = HybridIndex(), np.random.default_rng(5)
    passages = []
    for at in range(N):
        said = f"w{at} w{at + 1}" if vectors == "noise" else f"w{rng.integers(N)}"
        passages.append(Passage(f"p{at}", f"about {said}", {"source": at % 3}))
    near = random_vectors(N, seed=1 if vectors == "right" else 2)
    index.add(passages, near)
    return index


def labels(n: int = N) -> tuple[list[Query], list[set[str]]]:
    return QUERIES[:n], [{f"p{at}"} for at in range(n)]


def test_many_questions_find_the_leg_that_is_right() -> None:
    """Where vectors say nothing the weight falls; where only they do, it does not."""
    words = tune(CAUS(), index_of(vectors="noise"), *labels())
    assert words.tuning is not None
    assert words.alpha == words.tuning.alpha < 0.65
    assert words.tuning.gains
    meaning = tune(CAUS(alpha=0.3), index_of(vectors="right"), *labels())
    assert meaning.tuning is not None
    assert meaning.alpha is not None
    assert meaning.alpha > 0.6
    assert "take alpha=" in str(meaning.tuning)


def test_a_few_questions_move_it_less_than_many() -> None:
    index = index_of(vectors="noise")
    few, many = (tune(CAUS(), index, *labels(n)).alpha for n in (20, N))
    assert few is not None
    assert many is not None
    assert 0.85 > few > many


def test_questions_that_every_weight_answers_leave_it_where_it_is() -> None:
    index = index_of(vectors="right")
    index.add([Passage(f"p{at}", f"about w{at} w{at + 1}") for at in range(N)],
              random_vectors(N, seed=1))  # fmt: skip
    for alpha in (0.4, 0.33):  # the second is none of those that are tried
        tuned = tune(CAUS(alpha=alpha), index, *labels())
        assert tuned.alpha == alpha
        assert "it stays as it is" in str(tuned.tuning)


def test_what_it_reports_is_what_ir_measures_measures() -> None:
    """nDCG@10 of the previous weight, and the share of questions that found anything."""
    pytest.importorskip("ir_measures")
    index, (queries, _) = index_of(vectors="noise"), labels()
    relevant = [{f"p{at}", f"p{(at + 1) % N}"} for at in range(N)]
    tuning = tune(CAUS(k=3), index, queries, relevant).tuning
    assert tuning is not None
    found = CAUS().search(index, queries)
    ranked = {str(at): [each.id for each in one.passages] for at, one in enumerate(found)}
    judged = {str(at): dict.fromkeys(ids, 1) for at, ids in enumerate(relevant)}
    measured = retrieval_measures(ranked, judged, ["nDCG@10", "hit@10"])
    assert tuning.previous_ndcg == pytest.approx(measured["nDCG@10"].mean())
    assert tuning.interval[0] <= tuning.ndcg - tuning.previous_ndcg <= tuning.interval[1]
    pools = index.pool(queries, 50)
    by_weight = found_by_weight(CAUS(), pools, relevant)
    values = ndcg_by_weight(by_weight, [2] * N)
    assert values[:, WEIGHTS == 0.85].mean() == pytest.approx(tuning.previous_ndcg)


@pytest.mark.parametrize("option", [{"min_similarity": 0.2}, {"per_source": 1}, {"distinct": 0.4}])
def test_it_measures_what_a_search_finds(option: dict[str, Any]) -> None:
    """By the weight that was chosen, without what an option leaves out."""
    index, (queries, relevant) = index_of(vectors="noise"), labels(40)
    tuned, plain = (tune(caus, index, queries, relevant) for caus in (CAUS(**option), CAUS()))
    found = zip(tuned.search(index, queries), relevant, strict=True)
    hits = [any(each.id in ids for each in one.passages) for one, ids in found]
    assert tuned.tuning is not None
    assert plain.tuning is not None
    assert tuned.tuning.found == np.mean(hits) < plain.tuning.found


def test_hit_rates_are_those_of_the_first_relevant_passage() -> None:
    """Averaged with twenty questions of the default's; they sum to no more than 1."""
    tuned = tune(CAUS(), index_of(vectors="noise"), *labels())
    assert tuned.hit_rates is not None
    assert len(tuned.hit_rates) == 10
    assert tuned.hit_rates[0] > 0.52
    assert sum(tuned.hit_rates) <= 1


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        ([{"p0"}] * 4, "got 5 questions and relevant= for 4"),
        ([{"p0"}] * 4 + [set()], r"relevant\[4\] is empty"),
        ([{"p0"}] * 4 + ["p4"], r"relevant\[4\] must be a list, got the string 'p4'"),
        ([{"other"}] * 5, "no relevant passage was found for any question: .* such as 'other'"),
    ],
)
def test_wrong_labels_are_refused(relevant: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune(CAUS(), index_of(vectors="noise"), QUERIES[:5], relevant)
    with pytest.raises(ValueError, match=r"question 6 repeats .* with all its passages"):
        tune(CAUS(), index_of(vectors="noise"), [*QUERIES[:5], QUERIES[0]], [{"p0"}] * 6)
    with pytest.raises(ValueError, match="at least 5 questions"):
        tune(CAUS(), index_of(vectors="noise"), *labels(4))
