"""Qdrant, and engines with sparse vectors of ours: what no other engine has."""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.corpora.torch_api import torch_api_passages
from shared_core.engines import connect
from shared_core.errors import EngineError
from shared_core.types import Query

models = pytest.importorskip("qdrant_client.models")
pytest.importorskip("qdrant_edge")

from shared_core.engines.qdrant import QdrantEngine  # noqa: E402

from .qdrant_core import CoreClient  # noqa: E402
from .test_databases import FISH, RED_FISH, assert_same, filled, ids, vectors_of  # noqa: E402


@pytest.fixture
def core(tmp_path: Path) -> CoreClient:
    return CoreClient(tmp_path)


def over(client: Any, collection: str = "posrag", **options: Any) -> QdrantEngine:
    return QdrantEngine("qdrant://host", collection, client=client, **options)


def complete(engine: Any) -> bool:
    (pool,) = engine.pool([RED_FISH], 9)
    return bool(pool.complete)


def assert_exact(engine: Any, passages: list[Passage], mean: float | None = None) -> None:
    """It answers as an index of these passages does, lengths compared with `mean`."""
    index = filled(HybridIndex(mean_length=mean), passages)
    texts = ["red fish", "boats and fish", "tensor of shape", ""]
    queries = [*map(Query, texts, vectors_of(texts))]
    assert_same(engine.pool(queries, 9), index.pool(queries, 9), 9)


def test_a_query_is_two_requests(core: CoreClient) -> None:
    """For one query, or many; the second is the search."""
    engine = filled(over(core), FISH)
    for queries in ([RED_FISH], [RED_FISH] * 7):
        core.requests.clear()
        engine.pool(queries, 5, where={"n": [1, 2]})
        assert core.requests == ["retrieve", "query_batch_points"]


def test_what_a_query_brings_does_not_grow_with_the_collection(
    core: CoreClient, grown: list[list[Passage]]
) -> None:
    """In characters of the answers."""
    engine, answers, brought = over(core), list[Any](), list[int]()
    asking = engine._ask

    def ask(*arguments: Any, **options: Any) -> Any:
        answers.append(asking(*arguments, **options))
        return answers[-1]

    with patch.object(engine, "_ask", ask):
        for given in grown:
            filled(engine, given).pool([RED_FISH], 9)
            brought.append(len(repr(answers[-2:])))
    assert 1000 < brought[1] < 1.2 * brought[0]


def test_what_a_graph_proposes_is_not_complete(core: CoreClient) -> None:
    """Its scores are exact all the same."""
    filled(over(core), FISH)
    engine = over(core, dense="hnsw")
    assert not complete(engine)
    assert engine.delete(["unknown"]) == []


def test_types_are_told_apart_in_a_filter(core: CoreClient) -> None:
    """As in memory, but that true is not 1 in JSON."""
    values = ["2", 2, 2.5, True, None, ["a", 1], {"x": 1}]
    given = [Passage(f"{n}", "x", {"v": value}) for n, value in enumerate(values)]
    engine = filled(over(core), given)
    for wanted, found in (
        ("2", ["0"]),
        (2.0, ["1"]),
        ([2.5, "2"], ["0", "2"]),
        (True, ["3"]),
        (1, []),
        (None, ["4"]),
        ([["a", 1]], ["5"]),
    ):
        (pool,) = engine.pool([RED_FISH], 9, where={"v": wanted})
        assert ids(pool) == found


def test_lengths_are_compared_with_the_mean_of_the_first_day(core: CoreClient) -> None:
    """Until that has moved by more than 5%, which a warning tells, and `reweigh` takes up.

    One that is given stays.
    """
    engine, long = over(core), [*torch_api_passages()[:40]]
    long = [replace(passage, metadata={}) for passage in long]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        filled(engine, FISH)
    mean = np.mean([len(each.text.split()) for each in FISH])
    assert "amiss" not in (engine.describe() or {})
    with pytest.warns(UserWarning, match=r"of 2\.6 tokens in the mean, .* call reweigh\(\)"):
        filled(engine, long)
    assert "for passages of 2.6 tokens in the mean" in (engine.describe() or {})["amiss"]
    assert_exact(engine, [*FISH, *long], float(mean))
    engine.reweigh()
    assert "amiss" not in (engine.describe() or {})
    assert_exact(engine, [*FISH, *long])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = filled(over(core, "given", mean_length=50), [*FISH, *long])
    given.reweigh()
    assert_exact(given, [*FISH, *long], 50)
    other: Any = connect("qdrant://host", "given", client=core)
    assert other.bm25.mean_length == 50  # it is the collection's


class Dying:
    """A client that fails at its n-th write."""

    def __init__(self, client: CoreClient, writes: int) -> None:
        self.client, self.left = client, writes

    def __getattr__(self, name: str) -> Any:
        if name in ("upsert", "delete", "update_vectors"):
            self.left -= 1
            if self.left < 0:
                raise EngineError("cut off")
        return getattr(self.client, name)


@pytest.mark.parametrize("writes", range(5))
def test_who_fails_while_writing_leaves_a_mark(core: CoreClient, writes: int) -> None:
    """Pools say that they are not complete until `reweigh`, and then are exact again."""
    filled(over(core), FISH[:3])
    again = [replace(FISH[0], text="a red fish"), *FISH[3:]]
    with suppress(EngineError):
        filled(over(Dying(core, writes)), again)
    other = over(core)
    assert complete(other) == (writes in (0, 4))  # before its first, and after its last
    assert ("failed while writing" in (other.describe() or {}).get("amiss", "")) != complete(other)
    filled(other, again)
    assert complete(other) == (writes in (0, 4))
    with suppress(EngineError):
        over(Dying(core, writes + 1)).reweigh()
    other.reweigh()
    assert complete(other)
    assert_exact(other, [*FISH[1:3], *again])


def test_writers_at_a_time_are_found_out(core: CoreClient) -> None:
    """Two processes that add: whatever was lost, `reweigh` finds."""
    filled(over(core), FISH[:2])
    first, second = over(core), over(core)
    store = first._store

    def interrupted(rows: Any) -> None:
        store(rows)
        filled(second, FISH[3:])

    first._store = interrupted  # type: ignore[method-assign]
    filled(first, FISH[2:3])
    assert not complete(second)
    second.reweigh()
    (pool,) = second.pool([RED_FISH], 9)  # the order of what was added at a time is nobody's
    assert sorted(ids(pool)) == [each.id for each in FISH]
    assert_exact(second, [*pool.passages])


def test_vectors_of_others_are_never_read_as_ours(core: CoreClient) -> None:
    """Nor is anything written into their collection."""
    sparse = {"sparse": models.SparseVectorParams()}
    dense = {"dense": models.VectorParams(size=64, distance=models.Distance.COSINE)}
    core.create_collection("theirs", vectors_config=dense, sparse_vectors_config=sparse)
    with pytest.raises(ValueError, match="was not made by posrag"):
        over(core, "theirs")


def test_a_folder_keeps_everything(tmp_path: Path) -> None:
    """The client's local mode; and LangChain's store reads the same points."""
    address = f"qdrant://{tmp_path}/kept"
    with connect(address) as engine:
        filled(engine, FISH)
    with connect(address) as engine:
        assert_exact(engine, FISH, 2.6)
        store = pytest.importorskip("langchain_qdrant").QdrantVectorStore(
            engine._client,
            "posrag",
            pytest.importorskip("langchain_core.embeddings").DeterministicFakeEmbedding(size=64),
            vector_name="dense",
        )
        (document,) = store.similarity_search_by_vector(RED_FISH.vector.tolist(), k=1)
        assert (document.page_content, document.metadata["n"]) == ("red fish", 0)
    assert repr(engine) == f"QdrantEngine({address!r}, 'posrag')"


def test_a_key_may_stand_in_the_address() -> None:
    """Decoded, and never shown."""
    keys = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers["api-key"])
            answer = b'{"result": {"exists": false}, "status": "ok", "time": 0}'
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"qdrant://:s%65cret@127.0.0.1:{server.server_port}"
        with pytest.warns(UserWarning, match="insecure"), connect(address, tls=False) as engine:
            assert "cret" not in repr(engine)
        server.shutdown()
    assert {*keys} == {"secret"}
