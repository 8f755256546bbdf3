"""Milvus: what no other engine has."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
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
from .test_databases import FISH, RED_FISH, catch, filled, killed_amid_writes  # noqa: E402
from .test_qdrant import assert_exact, complete  # noqa: E402


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MilvusLite]:
    server = MilvusLite(tmp_path)
    yield server
    server.kill()


def test_a_query_is_two_requests(server: MilvusLite) -> None:
    """For one query, or many; passages and queries without a word included."""
    with filled(connect(server.address), [*FISH, Passage("blank", "")]) as engine:
        with patch.object(engine, "_ask", wraps=engine._ask) as asked:
            engine.pool([RED_FISH] * 7, 5, where={"n": [1, 2]})
        sent = [call.args[0].__name__ for call in asked.call_args_list]
        assert sent == ["query", "hybrid_search"]
        assert_exact(engine, [*FISH, Passage("blank", "")], 13 / 6)


def test_a_text_that_is_too_long_is_refused_before_anything_is_written(server: MilvusLite) -> None:
    """By its bytes."""
    with filled(connect(server.address), FISH) as engine:
        with pytest.raises(ValueError, match=r"passage 'long' has 66,000 bytes.*: split it"):
            filled(engine, [Passage("x", "red"), Passage("long", "ö" * 33_000)])
        assert complete(engine)
        assert engine.count() == len(FISH)


def test_a_collection_is_opened_after_a_restart_without_a_log(
    server: MilvusLite, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the client, which logs a traceback of what it is refused."""
    monkeypatch.setattr(logging.getLogger("pymilvus"), "propagate", True)
    with connect(server.address, mean_length=3) as engine:
        filled(engine, FISH)
    server.kill()
    server.start()
    with again(connect, server.address) as engine:
        assert engine.count() == len(FISH)
    assert "is in state 'released'" not in caplog.text


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
        filled(engine, FISH)
        written = killed_amid_writes(engine, server.kill)
        with pytest.raises(EngineError, match=rf"milvus://127\.0\.0\.1:{server.port} does not"):
            engine.pool([RED_FISH], 9)
        server.start()
        assert again(engine.get, [each.id for each in written]) == written
        engine.delete(each.id for each in catch(len(written) // 20))  # what was not
        if not complete(engine):  # it was killed amid the requests of an `add`
            engine.reweigh()
        assert complete(engine)
        assert_exact(engine, [*FISH, *written], 3)
