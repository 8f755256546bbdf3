"""A vector store of the framework's own as the dense leg, with BM25 next to it."""

from typing import Any

import pytest

from .drivers import QUERIES, Adapter, corpus

CORPUS = corpus()
ASKED = QUERIES[:3]  # LlamaIndex's own index embeds no empty query


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.0, "k": 20},
        {"alpha": 1.0},
        {"psi": "always"},
        {"alpha": 0.6, "k": 3, "psi": 1.3, "placement": "inverse"},
    ],
    ids=str,
)
async def test_deep_enough_it_finds_what_an_index_of_ones_own_finds(
    adapter: Adapter, options: dict[str, Any]
) -> None:
    """Both score cosines, which nobody says of the store; they are rounded otherwise."""
    options["fusion"] = "min_max"  # where this makes no difference
    own = adapter.build(CORPUS, fetch_k=60, **options)
    over = adapter.over_store(CORPUS, fetch_k=60, **options)
    for query in ASKED:
        found, expected = adapter.ask(over, query), adapter.ask(own, query)
        scores = [hit.score for hit in expected]
        assert [hit.score for hit in found] == pytest.approx(scores, abs=1e-5)
        ranks = [hit.why["rank"] for hit in expected]
        assert [hit.why["rank"] for hit in found] == ranks
        assert await adapter.aask(over, query) == found
    singles = [adapter.ask(over, query) for query in ASKED]
    assert adapter.ask_many(over, ASKED) == await adapter.aask_many(over, ASKED) == singles


async def test_rescored_what_bm25_alone_found_has_the_score_of_the_own_index(
    adapter: Adapter,
) -> None:
    """By default it has the lowest of the store's, and says so."""
    options: dict[str, Any] = {"fetch_k": 3, "k": 5, "alpha": 0.0}
    own = adapter.ask(adapter.build(CORPUS, **options), QUERIES[0])
    floor, exact = (adapter.over_store(CORPUS, rescore=told, **options) for told in (False, True))
    assert not all(hit.why["dense_exact"] for hit in adapter.ask(floor, QUERIES[0]))
    dense = [hit.why["dense"] for hit in own]
    for found in (adapter.ask(exact, QUERIES[0]), await adapter.aask(exact, QUERIES[0])):
        assert [hit.why["dense"] for hit in found] == pytest.approx(dense, abs=1e-5)
        assert all(hit.why["dense_exact"] for hit in found)
