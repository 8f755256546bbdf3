"""Milvus: what no other engine has."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from shared_core import Passage
from shared_core.engines import connect
from shared_core.errors import EngineError

pymilvus = pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")

from .conftest import MilvusLite  # noqa: E402
from .test_databases import filled  # noqa: E402
from .test_qdrant import PASSAGES, QUERY, assert_exact, complete  # noqa: E402


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MilvusLite]:
    server = MilvusLite(tmp_path)
    yield server
    server.kill()


def test_a_query_is_two_requests(server: MilvusLite) -> None:
    """For one query, or many; passages and queries without a word included."""
    with filled(connect(server.address), [*PASSAGES, Passage("blank", "")]) as engine:
        sent: list[str] = []
        query, search = pymilvus.MilvusClient.query, pymilvus.MilvusClient.hybrid_search

        def counting(method: Any) -> Any:
            def counted(*args: Any, **options: Any) -> Any:
                sent.append(method.__name__)
                return method(*args, **options)

            return counted

        with (
            patch.object(pymilvus.MilvusClient, "query", counting(query)),
            patch.object(pymilvus.MilvusClient, "hybrid_search", counting(search)),
        ):
            engine.pool([QUERY] * 7, 5, where={"n": [1, 2]})
        assert sent == ["query", "hybrid_search"]
        assert_exact(engine, [*PASSAGES, Passage("blank", "")], 13 / 6)


def test_an_expression_of_milvus(server: MilvusLite) -> None:
    """Ranges, say; a function cannot be applied there."""
    with filled(connect(server.address), PASSAGES) as engine:
        (pool,) = engine.pool([QUERY], 9, where="metadata['n'] >= 3")
        assert {passage.id for passage in pool.passages} == {"p3", "p4"}
        with pytest.raises(ValueError, match="give a mapping"):
            engine.pool([QUERY], 9, where=lambda metadata: True)


def test_a_text_that_is_too_long_is_refused_before_anything_is_written(server: MilvusLite) -> None:
    """By its bytes."""
    with filled(connect(server.address), PASSAGES) as engine:
        with pytest.raises(ValueError, match=r"passage 'long' has 66,000 bytes.*: split it"):
            filled(engine, [Passage("x", "red"), Passage("long", "ö" * 33_000)])
        assert complete(engine)
        assert engine.count() == len(PASSAGES)


def test_vectors_of_others_are_never_read_as_ours(server: MilvusLite) -> None:
    """A collection that is not of this package is not touched."""
    client = pymilvus.MilvusClient(server.address.replace("milvus", "http"))
    client.create_collection("theirs", dimension=64)
    with pytest.raises(ValueError, match="was not made by posrag"):
        connect(server.address, "theirs", client=client)
    client.close()


def again(method: Any, *arguments: Any) -> Any:
    """Call a method until it works: gRPC waits a little before it connects anew."""
    for _ in range(60):
        with suppress(EngineError):
            return method(*arguments)
        time.sleep(0.5)
    raise AssertionError("the client does not come back")


def test_a_server_that_is_killed_comes_back(server: MilvusLite) -> None:
    """Amid writes: what was acknowledged is there, and `reweigh` makes it exact again."""
    with connect(server.address, timeout=5, mean_length=3) as engine:
        filled(engine, PASSAGES)
        written: list[Passage] = []

        def write() -> None:
            for n in itertools.count():
                batch = [Passage(f"w{n}.{at}", f"fish {n} {at}") for at in range(20)]
                filled(engine, batch)
                written.extend(batch)

        with ThreadPoolExecutor(1) as pool:
            writer = pool.submit(write)
            while len(written) < 100:
                time.sleep(0.01)
            server.kill()
            with pytest.raises(EngineError, match="is the server up"):
                writer.result(timeout=60)
        with pytest.raises(EngineError, match=rf"milvus://127\.0\.0\.1:{server.port} does not"):
            engine.pool([QUERY], 9)
        server.start()
        there = {passage.id for passage in again(engine.get, [each.id for each in written])}
        assert there == {each.id for each in written}
        engine.delete(f"w{len(written) // 20}.{at}" for at in range(20))  # what was not
        if not complete(engine):  # it was killed amid the requests of an `add`
            engine.reweigh()
        assert complete(engine)
        assert_exact(engine, [*PASSAGES, *written], 3)


def test_a_server_that_does_not_answer_is_given_up_in_time() -> None:
    """And one that is not there; without a word of the key."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: [listener.accept() for _ in range(9)], daemon=True).start()
        for port in (listener.getsockname()[1], 1):
            started = time.monotonic()
            with pytest.raises(EngineError, match=rf"127\.0\.0\.1:{port} does not") as caught:
                connect(f"milvus://127.0.0.1:{port}", api_key="me:secret", tls=False, timeout=1)
            assert "secret" not in str(caught.value)
            assert time.monotonic() - started < 20
