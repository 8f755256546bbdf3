"""The gate that hosts in both frameworks share: fitted in one step, deciding by what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from instruments.gating_texts import ELSEWHERE, GENERATED
from shared_core import CAUS, HybridIndex, Passage
from shared_core.gating import ContextGate, VectorCandidates, WordCoverage, hyde
from shared_core.gating.gate import Embedder, Found
from tests.core.gating.words import (
    IDS,
    INSIDE,
    OUTSIDE,
    PASSAGES,
    VECTORS,
    embed,
    embed_all,
    fitted,
)

TEXTS = ["hive", "dough", "tide pool of flour"]

ANGLE = 0.5**0.5

TOLD: list[dict[str, Any]] = [
    {"dense": 0.4, "nearest": 0.6, "query": "hive"},
    {"dense": 0.2, "nearest": 0.6, "query": "hive"},
]


def filled(**options: Any) -> HybridIndex:
    index = HybridIndex(**options)
    index.add([Passage(id, text) for id, text in zip(IDS, PASSAGES, strict=True)], VECTORS)
    return index


def embedder_of(query: Any, texts: Any) -> Embedder:
    """Return a model of which each function is awaited, too."""

    async def aquery(text: str) -> Any:
        return query(text)

    async def atexts(given: list[str]) -> Any:
        return texts(given)

    return Embedder(query=query, texts=texts, aquery=aquery, atexts=atexts)


def retrieves(gate: ContextGate, query: str) -> bool:
    similarities = (VECTORS @ embed(gate.prepare(query))).tolist()
    return gate.decide(query, similarities, PASSAGES).retrieve


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_a_ranking_tells_the_nearest_cosine_whatever_it_ranks(alpha: float) -> None:
    """The best by both legs need not hold it; the pool always does."""
    ranking = filled().search(" hive\n", embed("hive"), k=1, fetch_k=1, alpha=alpha)
    assert ranking.nearest == pytest.approx((VECTORS @ embed("hive")).max(), abs=1e-6)
    (placed,) = CAUS().place(ranking).explain()
    assert (placed["nearest"], placed["query"]) == (ranking.nearest, "hive")


def test_what_is_no_cosine_is_not_called_one() -> None:
    """Inner products may have any size; a ranking of bare scores knows none."""
    ranking = filled(metric="inner_product").search("hive", embed("hive"), k=2)
    assert ranking.nearest is None
    assert {"nearest", "query"}.isdisjoint(CAUS().place(ranking).explain()[0])
    given = [Passage("a", "hive"), Passage("b", "dough")]
    found = CAUS().rescore("hive", [0.9, 0.1], given, cosines=True)  # that others found
    assert found.ranking.nearest is None


@pytest.mark.parametrize(
    ("searched", "details", "highest"),
    [
        (" hive\n", TOLD, 0.6),
        ("hive", [], None),
        (None, [{**each, "query": None} for each in TOLD], 0.6),
        ("hive", [*TOLD, {"score": 1.0}], ANGLE),
        ("dough", TOLD, ANGLE),
        ("hive", [TOLD[0], {**TOLD[1], "query": "dough"}], ANGLE),
    ],
)
async def test_explanations_tell_cosines_of_the_text_that_was_searched(
    searched: str | None, details: list[dict[str, Any]], highest: float | None
) -> None:
    """The nearest passage counts, though it is not there; its words are not known.

    One explanation that tells nothing, or of another query, leaves all open; then vectors tell.
    """
    gate, texts, asked = fitted(coverage=True), PASSAGES[: len(details)], []
    found = Found(
        query="queen bee", searched="hive", embedded=searched, details=details, texts=texts
    )
    model = embedder_of(lambda text: [2.0, 2.0], lambda texts: [[3.0, 0.0]] * len(texts))

    def embedder() -> Embedder:
        asked.append(model)
        return model

    for decision in (gate.decide_found(found, embedder), await gate.adecide_found(found, embedder)):
        assert decision.similarity == (pytest.approx(highest) if highest else None)
    assert len(asked) == (2 if highest == ANGLE else 0)


def test_the_gate_decides_by_what_was_found(gate: VectorCandidates) -> None:
    """Wrapped queries are unwrapped; words of the nearest five count."""
    words = WordCoverage.of(PASSAGES)
    plain, wordy = ContextGate(candidates=gate), ContextGate(candidates=gate, coverage=words)
    just_below = gate.edge - 0.02
    assert plain.prepare("\ninput is bees\n") == "bees"
    assert ContextGate(candidates=gate, transform=str.upper).prepare("bees") == "BEES"
    assert not plain.decide("queen bee", [just_below]).retrieve
    assert wordy.decide("\ninput is queen bee\n", [just_below, 0.1], PASSAGES[:2]).retrieve
    assert not wordy.decide("queen bee", []).retrieve
    order = [0.0, *[just_below] * 5]
    assert not wordy.decide("queen bee", order, [PASSAGES[0], *["stone"] * 5]).retrieve
    assert wordy.decide("queen bee", order[:-1], [PASSAGES[0], *["stone"] * 4]).retrieve


def test_queries_go_in_a_batch_only_where_the_model_embeds_both_alike() -> None:
    """A model with a prefix for queries must be given them as queries."""
    batches: list[int] = []

    def embed_texts(texts: list[str]) -> list[list[float]]:
        batches.append(len(texts))
        return embed_all(texts)

    def prefixed(text: str) -> list[float]:
        return embed(f"query: {text}")

    alike = embedder_of(embed, embed_texts).queries(TEXTS)
    assert batches == [1, 3]
    np.testing.assert_allclose(alike, embed_all(TEXTS))
    np.testing.assert_allclose(
        embedder_of(prefixed, embed_texts).queries(TEXTS), [prefixed(text) for text in TEXTS]
    )
    assert batches == [1, 3, 1]


def test_a_gate_is_fitted_in_one_step() -> None:
    """By key phrases and everyday questions, or by what the caller gives instead."""
    gate = fitted()
    assert gate.candidates.policy == "calibrated"
    assert gate.coverage is not None
    assert fitted(policy="median").coverage is None
    assert [retrieves(gate, query) for query in (INSIDE, OUTSIDE)] == [True, False]
    other = fitted(
        pseudo_queries=[("p0", "queen bee"), ("p0", "eggs"), *[("p1", "honey")] * 9],
        negatives=[f"stone{number}" for number in range(10)],
        policy="median",
        threshold=0.1,
        coverage=True,
    )
    sizes = other.candidates.similarities.size, other.candidates.foreign_similarities.size
    assert sizes == (11, 10)
    assert (other.candidates.policy, other.candidates.threshold) == ("median", 0.1)
    assert other.coverage is not None


def written(prompts: Sequence[str]) -> list[str]:
    """Write of anything in the words of a passage, as a model does that knows its readers."""
    return [f"{prompt} {prompt} smoke calms hive bees themselves honey then" for prompt in prompts]


def test_a_transform_that_makes_all_queries_similar_does_not_open_the_gate() -> None:
    """HyDE: what is foreign comes nearer, and so do the questions of the fit."""
    gate = fitted(transform=hyde(written, prompt="{query}"))
    assert sum(retrieves(gate, query) for query in ELSEWHERE) <= 1
    assert retrieves(gate, INSIDE)
    asked: list[str] = []

    def noted(query: str) -> str:
        asked.append(query)
        return query

    pairs = [*zip(IDS, GENERATED, strict=True)]
    own = fitted(transform=noted, pseudo_queries=pairs, negatives=ELSEWHERE, policy="median")
    assert asked == [*GENERATED, *ELSEWHERE]
    assert own.candidates.foreign_similarities.size == len(ELSEWHERE)
