"""A retriever over a database answers as one over an index in memory does."""

from __future__ import annotations

import copy
import pickle
import socket
from pathlib import Path
from typing import Any

import pytest

from shared_core.errors import EngineError

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
    assert await adapter.aadd(first, items) if awaited else adapter.add(first, items)
    engine = adapter.package.connect(postgres, name, timeout=20)
    again = adapter.retriever.from_engine(engine, adapter.model(), k=5, psi="always")
    for query in QUERIES[:2]:
        theirs = adapter.ask(memory, query)
        mine = await adapter.aask(again, query) if awaited else adapter.ask(again, query)
        assert [hit[:3] for hit in mine] == [hit[:3] for hit in theirs]
        scores = [hit.score for hit in theirs]
        assert [hit.score for hit in mine] == pytest.approx(scores, abs=1e-5)
        assert all(hit.why["dense_exact"] for hit in mine)
    many = await adapter.aask_many(again, QUERIES) if awaited else adapter.ask_many(again, QUERIES)
    assert [ids(found) for found in many] == [ids(adapter.ask(again, each)) for each in QUERIES]
    gone = await adapter.adelete(again, ["p0", "x"]) if awaited else adapter.delete(again, ["p0"])
    assert (gone, engine.count(), engine.get(["p0"])) == (["p0"], 59, [])
    for each in (first, again):
        each.index.close()


@pytest.mark.parametrize(("one", "other"), [SIDES, SIDES[::-1]])
def test_a_collection_of_one_framework_is_read_by_the_other(
    one: Adapter, other: Adapter, postgres: str
) -> None:
    """And changed there; the order is the same in both, also with a filter."""
    name = f"of {type(one).__name__}"
    filled, read = opened(one, postgres, name), opened(other, postgres, name, k=10)
    one.add(filled, one.items(CORPUS[:40]))
    other.add(read, other.items(CORPUS[40:]))
    memory = one.build(CORPUS)
    for query in QUERIES[:2]:
        for where in (None, {"lang": "de", "number": [1, 3, 7, 8]}):
            found = ids(one.ask(filled, query, where))
            assert found == ids(other.ask(read, query, where)) == ids(one.ask(memory, query, where))
    for hit in other.ask(read, QUERIES[0]):
        passage = CORPUS[int(str(hit.id)[1:])]
        assert hit.text == passage.text
        assert hit.metadata.items() >= passage.metadata.items()
    for each in (filled, read):
        each.index.close()


def test_a_deep_copy_shares_the_connections(
    adapter: Adapter, postgres: str, tmp_path: Path
) -> None:
    """A pickle has none, in another process it is opened again; nor is it saved to a folder."""
    stored = opened(adapter, postgres, f"copied {type(adapter).__name__}")
    assert copy.deepcopy(stored).index is stored.index
    with pytest.raises(TypeError, match=r"cannot be pickled or copied: open it again .* from_url"):
        pickle.dumps(stored)
    with pytest.raises(ValueError, match=r"PostgresEngine keeps its own .* from_url"):
        stored.save(tmp_path / "folder")
    stored.index.close()


def test_a_key_and_a_time_limit_are_those_of_the_connection(adapter: Adapter) -> None:
    """A server that accepts and never answers is given up after that time."""
    pytest.importorskip("qdrant_client")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"qdrant://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match=r"does not answer within 0\.2 s"):
            adapter.retriever.from_url(address, adapter.model(), timeout=0.2, api_key="secret")
