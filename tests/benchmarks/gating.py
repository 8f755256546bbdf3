"""The retrieval gate on labelled collections: recall on what the corpus answers, and specificity.

::

    python -m tests.benchmarks.gating --data FOLDER [FOLDER ...]

A folder holds the layout of BEIR, see `tests.benchmarks.quality`. A third of each collection's
topics (or titles) is held out: questions about the rest are positives; questions about the
held-out part, and those of every other collection, are negatives. HyDE and rewriting need a
language model, so they are not measured here.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shared_core.gating import EVERYDAY_QUESTIONS, VectorCandidates, WordCoverage, key_phrases
from shared_core.gating.pseudo_queries import first_sentences
from tests.benchmarks.quality import embed, lines

SEED = 0
POLICIES = ("calibrated", "density", "minimum", "lower_quartile", "mean", "median", 0.1)
TABLE_I = "positive: 95% above 0.55, median above 0.71; negative: 95% below 0.21, median below 0.04"
MOST_NEGATIVES = 2000


@dataclass(frozen=True)
class Collection:
    name: str
    texts: list[str]
    titles: list[str]
    vectors: np.ndarray
    topics: np.ndarray
    queries: list[str]
    query_vectors: np.ndarray
    golds: np.ndarray


@dataclass(frozen=True)
class Split:
    """A collection without the held-out topics, and the questions that go with it."""

    collection: Collection
    rows: np.ndarray
    fitted: np.ndarray
    asked: np.ndarray
    held_out: np.ndarray

    @property
    def vectors(self) -> np.ndarray:
        return self.collection.vectors[self.rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "posrag" / "gating")
    parser.add_argument("--contexts", type=int, default=1_000_000, help="growth is shown up to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    collections = [read(folder, options.cache) for folder in options.data]
    everyday = embed(list(EVERYDAY_QUESTIONS), options.cache)
    splits = [split(collection) for collection in collections]
    for collection in collections:
        separation(collection)
    print(f"  CAG, Table I, with another model: {TABLE_I}")
    print("\nRecall / specificity -> balanced accuracy [95% interval]; always retrieving: 0.500")
    for each in splits:
        accuracy(each, collections, everyday, options.cache)
    transfer(splits, collections, everyday)
    speed(everyday, options.contexts)


def read(folder: Path, cache: Path) -> Collection:
    documents = list(lines(folder / "corpus.jsonl"))
    row = {document["_id"]: number for number, document in enumerate(documents)}
    gold: dict[str, int] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, _ = line.split("\t")
        gold.setdefault(query, row[document])
    queries = [query for query in lines(folder / "queries.jsonl") if query["_id"] in gold]
    texts = [document["text"] for document in documents]
    about = [document.get("metadata") or {} for document in documents]
    titles = [document.get("title") or "" for document in documents]
    return Collection(
        name="/".join(folder.parts[-2:]),
        texts=texts,
        titles=titles,
        vectors=embed(texts, cache),
        topics=np.array(
            [
                str(one.get("topic") or one.get("domain") or title or number)
                for number, (one, title) in enumerate(zip(about, titles, strict=True))
            ]
        ),
        queries=[query["text"] for query in queries],
        query_vectors=embed([query["text"] for query in queries], cache),
        golds=np.array([gold[query["_id"]] for query in queries]),
    )


def split(collection: Collection) -> Split:
    """Hold out a third of the topics, and of the questions about the rest fit on every second."""
    rng = np.random.default_rng(SEED)
    topics = rng.permutation(np.unique(collection.topics))
    out = np.isin(collection.topics, topics[: len(topics) // 3])
    about = rng.permutation(np.flatnonzero(~out[collection.golds]))
    half = len(about) // 2
    return Split(
        collection,
        np.flatnonzero(~out),
        about[:half],
        about[half:],
        np.flatnonzero(out[collection.golds]),
    )


def separation(collection: Collection) -> None:
    rng = np.random.default_rng(SEED)
    own = np.vecdot(collection.query_vectors, collection.vectors[collection.golds])
    other = rng.integers(0, len(collection.texts), len(own))
    other = other[collection.topics[other] != collection.topics[collection.golds]]
    keep = rng.choice(len(own), len(other), replace=False)
    foreign = np.vecdot(collection.query_vectors[keep], collection.vectors[other])
    print(
        f"{collection.name}: similarity to the own context: 95% above {np.quantile(own, 0.05):.2f},"
        f" median {np.median(own):.2f}; to a random one: 95% below {np.quantile(foreign, 0.95):.2f}"
        f", median {np.median(foreign):.2f}"
    )


def sources(each: Split, cache: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the kinds of pseudo-queries: rows of the split's passages, and vectors."""
    collection = each.collection
    texts = [collection.texts[row] for row in each.rows]
    place = {row: number for number, row in enumerate(each.rows.tolist())}
    every = np.arange(len(texts))
    given = np.array([place[row] for row in collection.golds[each.fitted].tolist()])
    return {
        "given questions": (given, collection.query_vectors[each.fitted]),
        "key phrases": (every, embed(key_phrases(texts), cache)),
        "titles": (every, embed([collection.titles[row] or " " for row in each.rows], cache)),
        "first sentences": (every, embed(first_sentences(texts), cache)),
    }


def fit(each: Split, owners: np.ndarray, pseudo: np.ndarray, everyday: np.ndarray):
    ids = [str(number) for number in range(len(each.rows))]
    return VectorCandidates.fit(
        ids, each.vectors, [ids[row] for row in owners], pseudo, negatives=everyday
    )


def highest(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (queries @ vectors.T).max(axis=1)


def negatives_of(
    each: Split, collections: list[Collection]
) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return vectors and texts of the held-out questions, and of the other collections'."""
    rng = np.random.default_rng(SEED)
    own = each.collection
    vectors, texts = [], []
    for other in collections:
        if other is not own:
            drawn = rng.permutation(len(other.queries))[:MOST_NEGATIVES]
            vectors.append(other.query_vectors[drawn])
            texts += [other.queries[row] for row in drawn]
    held_out = [own.queries[row] for row in each.held_out]
    found = {"held-out topics": (own.query_vectors[each.held_out], held_out)}
    return found | ({"other collections": (np.concatenate(vectors), texts)} if vectors else {})


def accuracy(each: Split, collections: list[Collection], everyday: np.ndarray, cache: Path) -> None:
    own = each.collection
    positives = highest(own.query_vectors[each.asked], each.vectors)
    negatives = negatives_of(each, collections)
    scores = {side: highest(vectors, each.vectors) for side, (vectors, _) in negatives.items()}
    print(f"\n{own.name}: {len(each.rows)} passages, {len(positives)} positives")
    for what, (owners, pseudo) in sources(each, cache).items():
        gate = fit(each, owners, pseudo, everyday)
        for policy in POLICIES:
            edge = gate.with_policy(policy).levels.edge
            cells = [
                f"{side}: {measured(positives >= edge, found < edge)}"
                for side, found in scores.items()
            ]
            print(f"  {what:16}{policy!s:15} edge {edge:.3f}  " + "   ".join(cells))
        if what == "key phrases":
            hybrid(each, gate, negatives)
    for side, found in scores.items():
        bars = np.quantile(np.concatenate([positives, found]), np.linspace(0, 1, 500))
        best = max(bars, key=lambda bar: (positives >= bar).mean() + (found < bar).mean())
        print(
            f"  best threshold with labels, {side}: {best:.3f} "
            f"{measured(positives >= best, found < best)}"
        )


def hybrid(
    each: Split, gate: VectorCandidates, negatives: dict[str, tuple[np.ndarray, list[str]]]
) -> None:
    """Words beside similarity."""
    own = each.collection
    coverage = WordCoverage()
    texts = [own.texts[row] for row in each.rows]
    coverage.add(texts)

    def retrieved(vectors: np.ndarray, queries: list[str]) -> np.ndarray:
        scores = vectors @ each.vectors.T
        nearest = np.argpartition(-scores, 5, axis=1)[:, :5]
        return np.array(
            [
                gate.decide(
                    float(row.max()), coverage=coverage.share(query, [texts[n] for n in near])
                ).retrieve
                for row, near, query in zip(scores, nearest, queries, strict=True)
            ]
        )

    yes = retrieved(own.query_vectors[each.asked], [own.queries[row] for row in each.asked])
    cells = [
        f"{side}: {measured(yes, ~retrieved(vectors, queries))}"
        for side, (vectors, queries) in negatives.items()
    ]
    print(f"  {'key phrases':16}{'with words':28}" + "   ".join(cells))


def measured(hits: np.ndarray, refusals: np.ndarray) -> str:
    """Recall, specificity and their mean, with a bootstrap interval over the questions."""
    rng = np.random.default_rng(SEED)
    balanced = [
        (rng.binomial(len(hits), hits.mean(), 2000) / len(hits)),
        (rng.binomial(len(refusals), refusals.mean(), 2000) / len(refusals)),
    ]
    lower, upper = np.quantile(np.mean(balanced, axis=0), [0.025, 0.975])
    mean = (hits.mean() + refusals.mean()) / 2
    return f"{hits.mean():.2f}/{refusals.mean():.2f} -> {mean:.3f} [{lower:.3f}, {upper:.3f}]"


def transfer(splits: list[Split], collections: list[Collection], everyday: np.ndarray) -> None:
    """Fit on one collection's given questions and decide on the others, as one bar."""
    print("\nOne collection's fit on given questions, applied to the others (not recommended)")
    for source in collections:
        ids = [str(number) for number in range(len(source.texts))]
        gate = VectorCandidates.fit(
            ids,
            source.vectors,
            [ids[row] for row in source.golds],
            source.query_vectors,
            negatives=everyday,
        )
        for policy in ("calibrated", "density"):
            edge = gate.with_policy(policy).levels.edge
            cells = []
            for each in splits:
                if each.collection is not source:
                    positives = highest(each.collection.query_vectors[each.asked], each.vectors)
                    foreign, _ = negatives_of(each, collections)["other collections"]
                    refused = highest(foreign, each.vectors) < edge
                    mean = ((positives >= edge).mean() + refused.mean()) / 2
                    cells.append(f"{each.collection.name} {mean:.3f}")
            print(f"  {source.name:30}{policy:12} edge {edge:.3f}  " + "  ".join(cells))


def speed(everyday: np.ndarray, most: int) -> None:
    print("\nSpeed, vectors given")
    rng = np.random.default_rng(SEED)
    for contexts in [n for n in (1_700, 10_000, 100_000, 1_000_000) if n <= most]:
        gate = VectorCandidates(negatives=everyday)
        spent = 0.0
        for start in range(0, contexts, 10_000):
            size = min(10_000, contexts - start)
            vectors = rng.standard_normal((size, everyday.shape[1]), np.float32)
            pseudo = np.repeat(vectors, 3, axis=0)
            pseudo += rng.standard_normal(pseudo.shape, np.float32)
            ids = [str(number) for number in range(start, start + size)]
            owners = [id for id in ids for _ in range(3)]
            begun = time.perf_counter()
            gate.add(ids, vectors, owners, pseudo)
            spent += time.perf_counter() - begun
        begun = time.perf_counter()
        _ = gate.levels
        levels = time.perf_counter() - begun
        begun = time.perf_counter()
        for similarity in np.linspace(0, 1, 10_000).tolist():
            gate.decide(similarity)
        decision = (time.perf_counter() - begun) / 10_000
        print(
            f"  {contexts:>9,} x 3: fit {spent + levels:.2f} s (of it the levels {levels:.2f} s), "
            f"a decision {decision * 1e3:.4f} ms"
        )


if __name__ == "__main__":
    main()
