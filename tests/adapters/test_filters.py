"""A filter means the same on both sides, each in its own words, and in both legs."""

from typing import Any

import pytest

from shared_core import CAUS

from .drivers import QUERIES, Adapter, corpus, search
from .test_retriever import INDEX

CORPUS = corpus()


@pytest.mark.parametrize(
    "where",
    [
        {"lang": "de"},
        {"number": [3, 14, 15]},
        {"lang": "en", "number": 4},
        {"lang": ["en", "fr"], "number": [1, 2]},
        {"lang": "fr"},
        {"absent": 1},
    ],
    ids=str,
)
def test_a_filter_is_the_cores(adapter: Adapter, where: dict[str, Any]) -> None:
    """Equal, and any of, by one key or by several."""
    for options in ({}, {"alpha": 0.0, "fetch_k": 2}, {"alpha": 1.0, "k": 60}):
        retriever = adapter.build(CORPUS, **options)
        for query in QUERIES:
            expected = search(INDEX, query, CAUS(**options), where=where)
            assert adapter.ask(retriever, query, where) == expected


def test_a_filter_holds_through_changes(adapter: Adapter) -> None:
    """What was added since is found if it passes, and what was replaced no longer."""
    retriever = adapter.build(CORPUS, k=60)
    before = {hit.id for hit in adapter.ask(retriever, "padding", {"lang": "de"})}
    adapter.add(retriever, [adapter.item("padding", "new", lang="de")])
    adapter.add(retriever, [adapter.item("padding", "p1", lang="en")])
    after = {hit.id for hit in adapter.ask(retriever, "padding", {"lang": "de"})}
    assert after == (before | {"new"}) - {"p1"}
