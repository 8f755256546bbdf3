"""What a retriever over an index of its own finds: what the core finds, bit for bit."""

import asyncio
import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from shared_core import CAUS, PLACEMENTS, NeighbourSpans, Passage
from shared_core.placement import UShapeBestLast

from .drivers import PROFILE, QUERIES, Adapter, core_index, corpus, embed, ids, search

CORPUS = corpus()
INDEX = core_index(CORPUS)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 0.0},
        {"alpha": 1.0, "psi": "always"},
        {"alpha": 0.6, "fusion": "min_max", "psi": 1.3},
        {"fusion": "rrf", "psi": "never"},
        {"fetch_k": 1, "k": 3},
        {"k": 1000, "psi": 0.8},
        {"placement": UShapeBestLast(), "psi": "always", "k": 4},
        *({"placement": name, "psi": PROFILE, "k": 7} for name in PLACEMENTS),
    ],
    ids=repr,
)
async def test_it_finds_what_the_core_finds(adapter: Adapter, options: dict[str, Any]) -> None:
    """Asked once, awaited and in a batch, for much, little and nothing."""
    retriever = adapter.build(CORPUS, **options)
    expected = [search(INDEX, query, CAUS(**options)) for query in QUERIES]
    assert [adapter.ask(retriever, query) for query in QUERIES] == expected
    assert [await adapter.aask(retriever, query) for query in QUERIES] == expected
    assert adapter.ask_many(retriever, QUERIES) == expected
    assert await adapter.aask_many(retriever, QUERIES) == expected


@pytest.mark.parametrize(
    "options",
    [{"variant": "okapi"}, {"metric": "inner_product"}, {"tokenizer": lambda text: [*text]}],
    ids=lambda options: next(iter(options)),
)
def test_options_of_the_index_are_handed_through(adapter: Adapter, options: dict[str, Any]) -> None:
    expected = search(core_index(CORPUS, **options), QUERIES[0], CAUS())
    assert adapter.ask(adapter.build(CORPUS, **options), QUERIES[0]) == expected


@pytest.mark.parametrize(
    "where",
    [
        {"lang": "de"},
        {"lang": ["en", "fr"], "number": [1, 2]},
        {"lang": "fr"},
        {"absent": 1},
    ],
    ids=str,
)
def test_a_filter_is_the_cores(adapter: Adapter, where: dict[str, Any]) -> None:
    """Equal, and any of, by one key or by several, and in both legs."""
    for options in ({}, {"alpha": 0.0, "fetch_k": 2}, {"alpha": 1.0, "k": 60}):
        retriever = adapter.build(CORPUS, **options)
        for query in QUERIES:
            expected = search(INDEX, query, CAUS(**options), where=where)
            assert adapter.ask(retriever, query, where) == expected


OTHERS: dict[str, Any] = {
    "k": 3,
    "alpha": 1.0,
    "fetch_k": 1,
    "psi": "never",
    "expand": NeighbourSpans(window=1),
    "min_similarity": 0.9,
}


@pytest.mark.parametrize("over", ["index", "store"])
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore:no passage says which chunk")
async def test_an_option_set_later_is_as_one_that_was_given(
    adapter: Adapter, name: str, over: str
) -> None:
    build = adapter.build if over == "index" else adapter.over_store
    retriever, option = build(CORPUS, psi="always"), {name: OTHERS[name]}
    given = build(CORPUS, **{"psi": "always", **option})
    before = retriever.caus
    setattr(retriever, name, OTHERS[name])
    assert retriever.caus == replace(before, **option) == given.caus
    if (name, over) == ("min_similarity", "store"):
        with pytest.raises(ValueError, match=r"not known to be cosines.*over another leave"):
            adapter.ask(retriever, QUERIES[0])
        return
    expected = adapter.ask(given, QUERIES[0])
    assert adapter.ask(retriever, QUERIES[0]) == expected
    assert await adapter.aask(retriever, QUERIES[0]) == expected


def test_options_may_be_given_for_one_query(adapter: Adapter) -> None:
    for retriever in (adapter.build(CORPUS), adapter.over_store(CORPUS)):
        found = adapter.ask(retriever, QUERIES[0], {"lang": "de"}, k=3, alpha=1.0)
        assert {hit.metadata["lang"] for hit in found} == {"de"}
        assert (len(found), len(adapter.ask(retriever, QUERIES[0]))) == (3, 10)


async def test_an_empty_index_answers_nothing(adapter: Adapter) -> None:
    """Also one of which all was deleted."""
    emptied = adapter.build(CORPUS[:1])
    assert adapter.delete(emptied, ["p0"]) == ["p0"]
    for retriever in (adapter.build(), emptied):
        assert adapter.ask(retriever, "x") == await adapter.aask(retriever, "x") == []
        assert adapter.ask_many(retriever, ["x", "y"]) == [[], []]


# What is handed out, and what stays with the index and with the caller.


async def test_nothing_is_shared_with_the_caller(adapter: Adapter) -> None:
    """Over a store neither, but for what the store itself was given."""
    given = adapter.items(corpus())  # not the corpus of the other tests, as its lists are changed
    before = copy.deepcopy(given)
    own, stored = adapter.build(), adapter.over_store(corpus())
    adapter.add(own, given)
    expected = [adapter.ask(retriever, QUERIES[0]) for retriever in (own, stored)]
    assert given == before
    for item in given:
        item.metadata["tags"].append("changed")
    for retriever, once in zip((own, stored), expected, strict=True):
        for found in (
            adapter.ask(retriever, QUERIES[0]),
            await adapter.aask(retriever, QUERIES[0]),
        ):
            for hit in found:
                hit.metadata["tags"].append("changed")
                hit.why["slot"] = -1
        assert adapter.ask(retriever, QUERIES[0]) == once


def test_equal_texts_are_two(adapter: Adapter) -> None:
    twins = [Passage(id_, "the same words") for id_ in ("one", "other")]
    for retriever in (adapter.build(twins), adapter.over_store(twins)):
        assert sorted(ids(adapter.ask(retriever, "same"))) == ["one", "other"]


def test_a_copy_is_a_retriever_of_its_own(adapter: Adapter) -> None:
    """To another process, say: it finds the same, and what it deletes stays with the original."""
    retriever = adapter.build(CORPUS)
    before = adapter.ask(retriever, QUERIES[0])
    for copied in (copy.deepcopy(retriever), pickle.loads(pickle.dumps(retriever))):
        assert adapter.ask(copied, QUERIES[0]) == before
        adapter.delete(copied, ids(before))
        assert adapter.ask(copied, QUERIES[0]) != before
    assert adapter.ask(retriever, QUERIES[0]) == before


# Adding and deleting.


@pytest.mark.parametrize("awaited", [False, True])
async def test_it_stays_in_step_through_changes(adapter: Adapter, awaited: bool) -> None:
    """Adding, replacing and deleting, of ids that come one by one, and of some that are unknown."""
    changed, index, retriever = corpus(80), core_index(CORPUS), adapter.build(CORPUS)
    replaced = [Passage("p3", "a wholly new zebra", {"lang": "fr"})]
    for passages in (changed[50:], replaced, []):
        index.add(passages, [embed(passage.text) for passage in passages])
        items = iter(adapter.items(passages))
        added = await adapter.aadd(retriever, items) if awaited else adapter.add(retriever, items)
        assert added == ids(passages)
    gone = [f"p{number}" for number in range(0, 80, 4)]
    asked = iter([*gone, "unknown"])
    deleted = adapter.adelete if awaited else adapter.delete
    told = deleted(retriever, asked)
    assert (await told if awaited else told) == index.delete(gone) == gone
    for query in (*QUERIES, "zebra"):
        assert adapter.ask(retriever, query) == search(index, query, CAUS())


@pytest.mark.parametrize("text", ["raise", "nan", "short", "none"])
async def test_nothing_is_half_added(adapter: Adapter, text: str) -> None:
    """Where the model raises midway, or gives no vector that fits."""

    def broken(given: str) -> Any:
        if given == "raise":
            raise ConnectionError("no model today")
        vector = embed(given)
        return {"nan": [*vector[1:], float("nan")], "short": vector[1:], "none": []}.get(
            given, vector
        )

    retriever = adapter.build(CORPUS, adapter.model(broken))
    before = adapter.ask(retriever, "fine")
    batch = adapter.items([Passage("a", "fine"), Passage("b", text), Passage("p0", "good")])
    with pytest.raises((ConnectionError, ValueError)):
        adapter.add(retriever, batch)
    with pytest.raises((ConnectionError, ValueError)):
        await adapter.aadd(retriever, batch)
    with pytest.raises((ConnectionError, ValueError)):
        adapter.ask(retriever, text)
    assert adapter.ask(retriever, "fine") == before


# Many at once.


@pytest.mark.parametrize("over", ["index", "store"])
async def test_many_at_once_get_what_one_gets(adapter: Adapter, over: str) -> None:
    build = adapter.build if over == "index" else adapter.over_store
    retriever = build(CORPUS, psi="always")
    queries = [passage.text for passage in CORPUS] * 3
    serial = [adapter.ask(retriever, query) for query in queries]
    with ThreadPoolExecutor(16) as threads:
        assert [*threads.map(lambda query: adapter.ask(retriever, query), queries)] == serial
    assert await asyncio.gather(*(adapter.aask(retriever, query) for query in queries)) == serial
