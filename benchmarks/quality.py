"""Ranking quality: dense, BM25, and ways to fuse them, on labelled collections.

::

    python -m benchmarks.quality --data torch stdlib scipy sklearn FOLDER ...

``torch`` stands for the 52 questions of the CAUS benchmark on the API of the installed PyTorch. The
name of any other installed package stands for its documentation: the summary of a docstring asks
for its entry, whose name, signature and further text are the passage. ``stdlib`` is the source of
Python's standard library: the first sentence of a function's docstring asks for its code. A folder
holds ``corpus.jsonl`` {_id, title, text}, ``queries.jsonl`` {_id, text} and ``qrels/test.tsv`` or
``qrels.tsv`` (query-id, corpus-id, score), the layout of BEIR. Embeddings come from
all-MiniLM-L6-v2, or from ``--embedding``, and are kept under ``--cache``. The measures are those of
trec_eval; brackets are 95% bootstrap intervals over questions. The last rows are nDCG@10 less that
of the best fixed weight of min-max fusion for each collection: the mean, and the worst collection.
``--output`` keeps all but these as JSON, a mean and the ends of its interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.embedding import add_options, chosen
from benchmarks.figures import add_output, figure, keep
from benchmarks.labelled import Collection, read
from shared_core import CAUS, HybridIndex
from shared_core.arrays import Scores
from shared_core.cli.embedding import EmbeddingCache
from shared_core.evaluation import (
    bootstrap_interval,
    paired_difference_interval,
    retrieval_measures,
)
from shared_core.types import Query

GRID = [round(step / 10, 1) for step in range(11)]
MEASURES = ("nDCG@10", "hit@1", "hit@10")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", required=True)
    add_options(parser, "quality")
    add_output(parser)
    parser.add_argument("--fetch-k", type=int, default=50)
    parser.add_argument("--variant", choices=["lucene", "okapi"], default="lucene")
    parser.add_argument("--k1", type=float)
    options = parser.parse_args()
    try:
        collections = [read(source) for source in options.data]
    except ValueError as error:
        parser.error(f"--data: {error}")
    print(f"fetch_k={options.fetch_k}, BM25 {options.variant}")
    embed = chosen(options)
    losses([report(collection, options, embed) for collection in collections])


def report(
    collection: Collection, options: argparse.Namespace, embed: EmbeddingCache
) -> dict[str, float]:
    """Print the measures of each system; return nDCG@10 less that of the best fixed weight."""
    index = HybridIndex(variant=options.variant, k1=options.k1)
    index.add(collection.passages, embed([p.text for p in collection.passages]))
    texts = list(collection.queries.values())
    vectors = embed(texts)

    queries = [*map(Query, texts, vectors)]

    def measure(**how: object) -> dict[str, Scores]:
        caus = CAUS(k=10, fetch_k=options.fetch_k, **how)  # type: ignore[arg-type]
        rankings = {
            query: [passage.id for passage in found.passages]
            for query, found in zip(collection.queries, caus.search(index, queries), strict=True)
        }
        return retrieval_measures(rankings, collection.relevant, MEASURES)

    fixed = {alpha: measure(alpha=alpha, fusion="min_max") for alpha in GRID}
    best = max(GRID, key=lambda alpha: fixed[alpha]["nDCG@10"].mean())
    default = measure()
    systems = {
        "dense": fixed[1.0],
        "BM25": fixed[0.0],
        "RRF": measure(fusion="rrf"),
        "min-max, 0.3": fixed[0.3],
        "min-max, 0.5": fixed[0.5],
        f"min-max, best: {best}": fixed[best],
        "default": default,
        "distinct=0.95": measure(distinct=0.95),
    }
    print(f"\n{collection.name}, {len(texts):,} queries, {len(collection.passages):,} passages")
    print(f"{'':20}" + "".join(f"{name:>24}" for name in MEASURES))
    rows: list[dict[str, Any]] = []
    for system, values in systems.items():
        measured = {name: figure(values[name].mean(), interval(values[name])) for name in MEASURES}
        rows.append({"system": system, **measured})
        print(f"{system:20}" + "".join(f"{shown(measured[name]):>24}" for name in MEASURES))
    ends = paired_difference_interval(default["nDCG@10"], fixed[best]["nDCG@10"])
    less = figure((default["nDCG@10"] - fixed[best]["nDCG@10"]).mean(), ends)
    rows.append({"system": "default less best min-max", "nDCG@10": less})
    print("default less best min-max, nDCG@10: {:+.4f} [{:+.4f}, {:+.4f}]".format(*less))
    about = {"benchmark": "quality", "embedding": embed.label, "collection": collection.name}
    keep(options.output, about, rows)
    top = fixed[best]["nDCG@10"].mean()
    lost = {system: float(values["nDCG@10"].mean() - top) for system, values in systems.items()}
    return {system: value for system, value in lost.items() if "best" not in system}


def losses(rows: Sequence[Mapping[str, float]]) -> None:
    print(f"\n{'less best min-max':20}{'mean':>10}{'worst':>10}")
    for system in rows[0]:
        each = [row[system] for row in rows]
        print(f"{system:20}{np.mean(each):+10.4f}{min(each):+10.4f}")


def interval(values: Scores) -> tuple[float, float]:
    return bootstrap_interval(values[:, None], lambda means: means[:, 0])


def shown(measured: Sequence[float]) -> str:
    return "{:.3f} [{:.3f}, {:.3f}]".format(*measured)


if __name__ == "__main__":
    main()
