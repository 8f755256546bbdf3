"""What hosts of the gate need of the core: cosines of what was found, and a fit in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, HybridIndex, Passage
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import ContextGate, DriftMonitor
from shared_core.gating.fitting import as_queries, fit_gate, fit_index
from shared_core.gating.found_cosines import (
    Embedded,
    afound_cosines,
    cosines,
    found_cosines,
    reported_cosines,
)
from tests.core.gating.words import DIM, IDS, INSIDE, OUTSIDE, PASSAGES, embed

VECTORS = np.array([embed(text) for text in PASSAGES], np.float32)

TOLD: list[dict[str, Any]] = [
    {"dense": 0.4, "nearest": 0.6, "query": "hive"},
    {"dense": 0.2, "nearest": 0.6, "query": "hive"},
]

TEXTS = ["hive", "dough", "tide pool of flour"]


def filled(**options: Any) -> HybridIndex:
    index = HybridIndex(**options)
    index.add([Passage(id, text) for id, text in zip(IDS, PASSAGES, strict=True)], VECTORS)
    return index


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    return [embed(text) for text in texts]


def shouted(text: str) -> list[str]:
    """Return the words in capitals, as no other tokenizer does."""
    return text.upper().split()


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("batch", [False, True])
def test_a_ranking_tells_the_nearest_cosine_whatever_it_ranks(alpha: float, batch: bool) -> None:
    """The best by both legs need not hold it; the pool always does."""
    index, expected = filled(), VECTORS @ np.array([embed(text) for text in TEXTS]).T
    for text, cosine in zip(TEXTS, expected.max(axis=0), strict=True):
        if batch:
            (ranking,) = index.search_batch(
                [f" {text}\n"], [embed(text)], k=1, fetch_k=1, alpha=alpha
            )
        else:
            ranking = index.search(f" {text}\n", embed(text), k=1, fetch_k=1, alpha=alpha)
        assert ranking.nearest == pytest.approx(cosine, abs=1e-6)
        assert ranking.nearest is not None
        assert ranking.nearest >= ranking.dense[0]
        placed = CAUS().place(ranking).explain()
        assert [why["nearest"] for why in placed] == [ranking.nearest]
        assert [why["query"] for why in placed] == [ranking.query] == [text]


def test_what_is_no_cosine_is_not_called_one() -> None:
    """Inner products may have any size; a ranking of bare scores, and an empty one, know none."""
    ranking = filled(metric="inner_product").search("hive", embed("hive"), k=2)
    assert ranking.nearest is None
    assert {"nearest", "query"}.isdisjoint(CAUS().place(ranking).explain()[0])
    assert CAUS().rank([0.9, 0.1], [1.0, 2.0]).nearest is None
    assert HybridIndex().search("hive", embed("hive")).nearest is None


def test_an_index_gives_back_what_it_embeds() -> None:
    """In insertion order, without what was deleted, as copies."""
    index = filled()
    index.delete(["p1"])
    passages, vectors = index.embedded()
    assert [each.id for each in passages] == [id for id in IDS if id != "p1"]
    np.testing.assert_allclose(vectors, np.delete(VECTORS, 1, axis=0), atol=1e-6)
    vectors[:] = 0
    assert index.embedded()[1].any()
    assert HybridIndex().embedded()[0] == []


def test_explanations_tell_cosines_or_nothing() -> None:
    """The nearest passage counts, though it is not there; one untold passage leaves it open."""
    assert reported_cosines("hive", TOLD, ["a", "b"]) == ([0.4, 0.2, 0.6], ["a", "b", ""])
    assert reported_cosines("hive", [{**TOLD[0], "dense": 0.6}], ["a"]) == ([0.6], ["a"])
    assert reported_cosines("hive", [*TOLD, {"score": 1.0}], ["a", "b", "c"]) is None
    assert reported_cosines("hive", [], []) == ([], [])


def test_explanations_tell_cosines_of_the_text_that_was_searched() -> None:
    """Those of another do not count, nor those of a vector without a text; one is enough."""
    assert reported_cosines(" hive\n", TOLD, ["a", "b"]) == reported_cosines(
        "hive", TOLD, ["a", "b"]
    )
    assert reported_cosines("dough", TOLD, ["a", "b"]) is None
    assert reported_cosines("hive", [TOLD[0], {**TOLD[1], "query": "dough"}], ["a", "b"]) is None
    vector = [{**each, "query": None} for each in TOLD]
    assert reported_cosines("hive", vector, ["a", "b"]) is None
    assert reported_cosines(None, TOLD, ["a", "b"]) is None
    assert reported_cosines(None, vector, ["a", "b"]) == ([0.4, 0.2, 0.6], ["a", "b", ""])


async def test_what_is_told_is_not_embedded() -> None:
    """Awaited or not; what is not told is computed of the vectors."""
    embedded: list[str] = []

    def embed() -> Embedded:
        embedded.append("once")
        return [1.0, 0.0], [[3.0, 0.0], [0.0, 5.0]]

    async def aembed() -> Embedded:
        return embed()

    for details, texts in ((TOLD, ["a", "b"]), ([], [])):
        found = reported_cosines("hive", details, texts)
        assert found_cosines("hive", details, texts, embed) == found
        assert await afound_cosines("hive", details, texts, aembed) == found
    assert embedded == []
    for query, untold in (("hive", [{}, {}]), ("dough", TOLD)):
        for found in (
            found_cosines(query, untold, ["a", "b"], embed),
            await afound_cosines(query, untold, ["a", "b"], aembed),
        ):
            assert found == ([1.0, 0.0], ["a", "b"])
    assert len(embedded) == 4


def test_cosines_are_of_any_length_and_finite() -> None:
    """Models need not give unit vectors."""
    assert cosines([2.0, 0.0], [[3.0, 0.0], [0.0, 5.0], [0.0, 0.0]], 3) == [1.0, 0.0, 0.0]
    assert cosines([1.0], [], 0) == []
    with pytest.raises(ValueError, match="the query: vector 0 holds"):
        cosines([np.nan, 1.0], [[1.0, 1.0]], 1)
    with pytest.raises(ValueError, match="the passages found: vector 1 holds"):
        cosines([1.0, 1.0], [[1.0, 1.0], [np.inf, 1.0]], 2)
    with pytest.raises(ValueError, match="found: expected vectors of dimension 2, got dimension 3"):
        cosines([1.0, 1.0], [[1.0, 1.0, 1.0]], 1)


def test_queries_go_in_a_batch_only_where_the_model_embeds_both_alike() -> None:
    """A model with a prefix for queries must be given them as queries."""
    batches: list[int] = []
    single: list[str] = []

    def embed_texts(texts: list[str]) -> list[list[float]]:
        batches.append(len(texts))
        return embed_all(texts)

    def prefixed(text: str) -> list[float]:
        single.append(text)
        return embed(f"query: {text}")

    alike = as_queries(embed, embed_texts)(TEXTS)
    assert batches == [1, 3]
    np.testing.assert_allclose(alike, embed_all(TEXTS))
    np.testing.assert_allclose(
        as_queries(prefixed, embed_texts)(TEXTS), [embed(f"query: {text}") for text in TEXTS]
    )
    assert single == TEXTS
    assert np.shape(as_queries(prefixed, embed_texts)(TEXTS[:1])) == (1, DIM)


def test_a_gate_is_fitted_in_one_step() -> None:
    """By key phrases and everyday questions, or by what the caller gives instead."""
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all)
    assert gate.candidates.policy == "calibrated"
    assert gate.coverage is None
    nearest = [float((VECTORS @ embed(query)).max()) for query in (INSIDE, OUTSIDE)]
    assert [gate.candidates.decide(each).retrieve for each in nearest] == [True, False]
    other = fit_gate(
        IDS,
        PASSAGES,
        VECTORS,
        embed_all,
        pseudo_queries=[("p0", "queen bee"), ("p0", "eggs"), *[("p1", "honey")] * 9],
        negatives=[f"stone{number}" for number in range(10)],
        policy="median",
        threshold=0.1,
        coverage=True,
    )
    assert (other.candidates.similarities.size, other.candidates.background.size) == (11, 10)
    assert (other.candidates.policy, other.candidates.threshold) == ("median", 0.1)
    assert other.coverage is not None
    assert len(other.coverage) == len(PASSAGES)


def test_a_gate_is_fitted_on_an_index() -> None:
    """As on its passages and vectors; a model to be verified is, and only such a one."""
    index, options = filled(), {"coverage": True, "policy": "median", "threshold": 0.1}
    vectors = index.embedded()[1]
    one = fit_gate(IDS, PASSAGES, vectors, embed_all, **options)  # type: ignore[arg-type]
    for verify in (None, embed):
        two = fit_index(index, embed_all, verify=verify, **options)  # type: ignore[arg-type]
        assert two.candidates.levels == one.candidates.levels
        assert two.candidates.threshold == 0.1
        assert two.coverage is not None
        assert one.coverage is not None
        assert two.coverage.counts == one.coverage.counts
    with pytest.raises(EmbeddingMismatchError, match="not the one the index was built with"):
        fit_index(index, embed_all, verify=lambda text: embed(text[::-1]))


def test_the_tokenizer_reaches_the_gate() -> None:
    """For key phrases and coverage; on an index it is that of the index, unless one is given."""
    asked: list[str] = []

    def asking(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed_all(texts)

    fit_gate(IDS, PASSAGES, VECTORS, asking, tokenizer=shouted)
    assert "BEE LAYS UP TWO THOUSAND" in asked
    asked.clear()
    gate = fit_index(filled(tokenizer=shouted), asking, coverage=True)
    assert "BEE LAYS UP TWO THOUSAND" in asked
    assert gate.coverage is not None
    assert gate.coverage.tokenizer is shouted
    asked.clear()
    fit_index(filled(tokenizer=shouted), asking, tokenizer=None)
    assert not any(text.isupper() for text in asked)


def test_the_gate_tells_its_monitor_of_every_similarity() -> None:
    """Not of an index without passages, which has none."""
    candidates = fit_gate(IDS, PASSAGES, VECTORS, embed_all).candidates
    gate = ContextGate(candidates=candidates, drift=DriftMonitor(candidates, window=20))
    for _ in range(30):
        gate.decide(OUTSIDE, [])
    for _ in range(19):
        gate.decide(OUTSIDE, [0.0])
    with pytest.warns(UserWarning, match="the last 20 queries have left"):
        gate.decide(OUTSIDE, [0.0])
