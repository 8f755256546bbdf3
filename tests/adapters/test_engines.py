"""A retriever over a database answers as one over an index in memory does."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from shared_core import NeighbourSpans
from shared_core.types import Passage

from .drivers import QUERIES, Adapter, LangChain, LlamaIndex, corpus, ids

SIDES: tuple[Adapter, ...] = (LangChain(), LlamaIndex())
CORPUS = corpus()


def opened(adapter: Adapter, address: str, collection: str, **options: Any) -> Any:
    return adapter.retriever.from_url(address, adapter.model(), collection=collection, **options)


@pytest.mark.parametrize("awaited", [False, True])
async def test_the_same_from_a_database(adapter: Adapter, awaited: bool, postgres: str) -> None:
    """Filled through one retriever, found by another, with the explanation of every score."""
    items, name = adapter.items(CORPUS), f"{type(adapter).__name__}{awaited}"
    memory = adapter.build(CORPUS, k=5, psi="always")
    first = opened(adapter, postgres, name)
    assert adapter.ask(first, QUERIES[0]) == []
    assert await adapter.aadd(first, items) if awaited else adapter.add(first, items)
    engine = adapter.package.connect(postgres, name, timeout=20)
    again = adapter.retriever.from_engine(engine, adapter.model(), k=5, psi="always")
    for query in QUERIES[:2]:
        for options in ({}, {"where": {"lang": "en", "number": [2, 6, 12]}}, {"k": 3, "alpha": 1}):
            if awaited and options:
                continue
            theirs = adapter.ask(memory, query, **options)
            mine = (
                await adapter.aask(again, query)
                if awaited
                else adapter.ask(again, query, **options)
            )
            assert [hit[:3] for hit in mine] == [hit[:3] for hit in theirs]
            scores = [hit.score for hit in theirs]
            assert [hit.score for hit in mine] == pytest.approx(scores, abs=1e-5)
            assert all(hit.why["dense_exact"] for hit in mine)
    many = await adapter.aask_many(again, QUERIES) if awaited else adapter.ask_many(again, QUERIES)
    assert [ids(found) for found in many] == [ids(adapter.ask(again, each)) for each in QUERIES]
    gone = await adapter.adelete(again, ["p0", "x"]) if awaited else adapter.delete(again, ["p0"])
    assert (gone, engine.count(), engine.get(["p0"])) == (["p0"], 59, [])
    with pytest.raises(ValueError, match="got the string 'p1'"):
        engine.delete("p1")
    for each in (first, again):
        each.index.close()


@pytest.mark.parametrize(("one", "other"), [SIDES, SIDES[::-1]])
def test_a_collection_of_one_framework_is_read_by_the_other(
    one: Adapter, other: Adapter, postgres: str
) -> None:
    """And changed there; the order is the same in both."""
    name = f"of {type(one).__name__}"
    filled, read = opened(one, postgres, name), opened(other, postgres, name, k=10)
    one.add(filled, one.items(CORPUS[:40]))
    other.add(read, other.items(CORPUS[40:]))
    memory = one.build(CORPUS)
    for query in QUERIES:
        for where in (None, {"lang": "de"}):
            found = ids(one.ask(filled, query, where))
            assert ids(other.ask(read, query, where)) == found
            if query in QUERIES[:2]:  # the others find passages of equal scores
                assert found == ids(one.ask(memory, query, where))
    for hit in other.ask(read, QUERIES[0]):
        passage = CORPUS[int(str(hit.id)[1:])]
        assert hit.text == passage.text
        assert hit.metadata.items() >= passage.metadata.items()
    for each in (filled, read):
        each.index.close()


def test_spans_from_a_database(adapter: Adapter, postgres: str) -> None:
    """By the number of a chunk in its document, whose key may be that of LangChain's loaders."""
    for key in ("doc_id", "source"):
        chunks = [
            Passage(each.id, each.text, {key: f"d{n // 6}", "chunk_id": n % 6})
            for n, each in enumerate(CORPUS)
        ]
        options: dict[str, Any] = {"k": 3, "expand": NeighbourSpans(window=2, token_budget=None)}
        memory = adapter.build(chunks, **options)
        stored = opened(adapter, postgres, f"{key} {type(adapter).__name__}", **options)
        adapter.add(stored, adapter.items(chunks))
        for query in QUERIES[:2]:
            mine, theirs = adapter.ask(stored, query), adapter.ask(memory, query)
            assert [hit.why["chunks"] for hit in mine] == [hit.why["chunks"] for hit in theirs]
            assert [hit[:3] for hit in mine] == [hit[:3] for hit in theirs]
            assert max(len(hit.why["chunks"]) for hit in mine) > 1
        stored.index.close()


def test_a_deep_copy_shares_the_connections(adapter: Adapter, postgres: str) -> None:
    """A pickle has none: in another process it is opened again."""
    stored = opened(adapter, postgres, f"copied {type(adapter).__name__}")
    adapter.add(stored, adapter.items(CORPUS))
    copied = copy.deepcopy(stored)
    assert copied.index is stored.index
    assert adapter.ask(copied, QUERIES[0]) == adapter.ask(stored, QUERIES[0])
    with pytest.raises(TypeError, match=r"cannot be pickled or copied: open it again .* from_url"):
        pickle.dumps(stored)
    stored.index.close()


def test_what_cannot_be_connected_is_told_by_its_address(adapter: Adapter) -> None:
    """No engine is guessed."""
    with pytest.raises(ValueError, match=r"'mysql': give one that begins with postgresql://"):
        opened(adapter, "mysql://localhost/db", "x")


def test_what_is_in_a_database_is_not_saved_to_a_folder(
    adapter: Adapter, postgres: str, tmp_path: Path
) -> None:
    """It is there already."""
    retriever = opened(adapter, postgres, "posrag")
    with pytest.raises(ValueError, match=r"PostgresEngine keeps its own .* from_url"):
        retriever.save(tmp_path / "folder")
    retriever.index.close()
