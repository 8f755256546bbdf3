"""Ranking quality: dense, BM25, RRF, fixed weights and ``alpha="auto"`` on labelled collections.

::

    python -m tests.benchmarks.quality --data FOLDER [FOLDER ...]

A folder holds ``corpus.jsonl`` {_id, title, text}, ``queries.jsonl`` {_id, text} and
``qrels.tsv`` (query-id, corpus-id, score), the layout of BEIR. Embeddings come from
all-MiniLM-L6-v2 and are kept under ``--cache``. nDCG@10 is that of trec_eval, through ir-measures.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import ir_measures
import numpy as np
from ir_measures import nDCG
from sentence_transformers import SentenceTransformer

from shared_core import HybridIndex, Passage
from shared_core.cli.demo.model import default_model

GRID = [round(step / 10, 1) for step in range(11)]
SEED = 0


@dataclass(frozen=True)
class Collection:
    name: str
    passages: list[Passage]
    queries: dict[str, str]
    qrels: list[ir_measures.Qrel]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "posrag" / "quality")
    parser.add_argument("--fetch-k", type=int, default=50)
    parser.add_argument("--variant", choices=["lucene", "okapi"], default="lucene")
    parser.add_argument("--k1", type=float)
    options = parser.parse_args()
    print(f"nDCG@10, fetch_k={options.fetch_k}, BM25 {options.variant}")
    print(
        f"{'collection':28}{'queries':>8}{'dense':>8}{'BM25':>8}{'RRF':>8}{'a=0.3':>8}"
        f"{'best a':>14}{'auto':>8}   auto - best a [95%]"
    )
    for folder in options.data:
        report(folder, options)


def report(folder: Path, options: argparse.Namespace) -> None:
    collection = read(folder)
    index = HybridIndex(variant=options.variant, k1=options.k1)
    index.add(collection.passages, embed([p.text for p in collection.passages], options.cache))
    texts = list(collection.queries.values())
    vectors = embed(texts, options.cache)

    def measure(**how: object) -> np.ndarray:
        rankings = index.search_batch(texts, vectors, k=10, fetch_k=options.fetch_k, **how)
        run = [
            ir_measures.ScoredDoc(query, passage.id, -rank)
            for query, ranking in zip(collection.queries, rankings, strict=True)
            for rank, passage in enumerate(ranking.passages)
        ]
        values = {
            m.query_id: m.value for m in ir_measures.iter_calc([nDCG @ 10], collection.qrels, run)
        }
        return np.array([values[query] for query in collection.queries])

    fixed = {alpha: measure(alpha=alpha) for alpha in GRID}
    rrf, auto = measure(alpha=0.5, fusion="rrf"), measure(alpha="auto")
    best = max(GRID, key=lambda alpha: fixed[alpha].mean())
    lower, upper = interval(auto - fixed[best])
    print(
        f"{collection.name:28}{len(texts):8}{fixed[1.0].mean():8.3f}{fixed[0.0].mean():8.3f}"
        f"{rrf.mean():8.3f}{fixed[0.3].mean():8.3f}{fixed[best].mean():8.3f} at {best:.1f}"
        f"{auto.mean():8.3f}   {(auto - fixed[best]).mean():+.4f} [{lower:+.4f}, {upper:+.4f}]"
    )


def read(folder: Path) -> Collection:
    """Read a collection; queries without a judged passage are left out, as usual."""
    passages = [
        Passage(d["_id"], "\n".join(filter(None, [d.get("title"), d["text"]])))
        for d in lines(folder / "corpus.jsonl")
    ]
    rows = (row.split("\t") for row in (folder / "qrels.tsv").read_text().splitlines()[1:])
    qrels = [ir_measures.Qrel(query, passage, int(float(grade))) for query, passage, grade in rows]
    judged = {qrel.query_id for qrel in qrels}
    queries = {q["_id"]: q["text"] for q in lines(folder / "queries.jsonl") if q["_id"] in judged}
    return Collection("/".join(folder.parts[-2:]), passages, queries, qrels)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def embed(texts: list[str], cache: Path) -> np.ndarray:
    """Embed with all-MiniLM-L6-v2, or take what an earlier run left in `cache`."""
    path = cache / f"{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:24]}.npy"
    if not path.is_file():
        model = SentenceTransformer(default_model())
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, vectors)
    return np.load(path)


def interval(differences: np.ndarray, resamples: int = 2000) -> tuple[float, float]:
    """95% bootstrap interval of a mean paired difference, queries resampled."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, differences.size, (resamples, differences.size))
    lower, upper = np.quantile(differences[drawn].mean(axis=1), [0.025, 0.975])
    return float(lower), float(upper)


if __name__ == "__main__":
    main()
