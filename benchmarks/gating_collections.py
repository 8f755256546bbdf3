"""Labelled collections for the gate's benchmark: their questions, splits and measures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks import labelled
from benchmarks.labelled import judgements, lines
from shared_core.gating import VectorCandidates, WordCoverage
from shared_core.gating.words import telling_words

SEED = 0
MOST_NEGATIVES = 2000
HELD_OUT, OTHERS = "held-out topics", "other collections"

Embed = Callable[[Sequence[str]], np.ndarray]

Evidence = list[tuple[float, float]]
"""Highest similarity of each question, and share of its words in the nearest passages."""


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
class Asked:
    """Questions: their collection, and their rows in it."""

    collection: Collection
    rows: np.ndarray

    @property
    def texts(self) -> list[str]:
        return [self.collection.queries[row] for row in self.rows]

    @property
    def vectors(self) -> np.ndarray:
        return self.collection.query_vectors[self.rows]


@dataclass(frozen=True)
class Split:
    """A collection without the held-out topics, and the questions that go with it.

    Attributes
    ----------
    collection
        All of it.
    rows
        The passages that are left.
    fitted
        Questions about these, by which a gate may be fitted.
    positives
        The others about these.
    negatives
        Questions to refuse: about the held-out topics, and, one part a collection, the others'.
    """

    collection: Collection
    rows: np.ndarray
    fitted: np.ndarray
    positives: Asked
    negatives: dict[str, list[Asked]]

    @cached_property
    def texts(self) -> list[str]:
        return [self.collection.texts[row] for row in self.rows]

    @cached_property
    def vectors(self) -> np.ndarray:
        return self.collection.vectors[self.rows]

    def nearest(self, asked: Sequence[Asked]) -> np.ndarray:
        """Return each question's highest similarity."""
        return np.concatenate([highest(each.vectors, self.vectors) for each in asked])

    def evidence(self, asked: Asked, words: WordCoverage) -> Evidence:
        """Return each question's highest similarity, and the share of its words nearby."""
        scores = asked.vectors @ self.vectors.T
        nearest = np.argpartition(-scores, 5, axis=1)[:, :5]
        return [
            (float(row.max()), words.share(query, [self.texts[at] for at in near]))
            for row, near, query in zip(scores, nearest, asked.texts, strict=True)
        ]


def read(source: str, embed: Embed) -> Collection:
    """Read a folder, or what else `source` stands for: then the topics are modules."""
    folder = Path(source)
    if not (folder / "corpus.jsonl").is_file():
        return _installed(labelled.read(source), embed)
    documents = list(lines(folder / "corpus.jsonl"))
    row = {document["_id"]: number for number, document in enumerate(documents)}
    gold: dict[str, int] = {}
    for query, document, _ in judgements(folder):
        gold.setdefault(query, row[document])
    queries = [query for query in lines(folder / "queries.jsonl") if query["_id"] in gold]
    texts = ["\n".join(filter(None, [each.get("title"), each["text"]])) for each in documents]
    about = [document.get("metadata") or {} for document in documents]
    titles = [document.get("title") or "" for document in documents]
    return Collection(
        name="/".join(folder.parts[-2:]),
        texts=texts,
        titles=titles,
        vectors=embed(texts),
        topics=np.array(
            [
                str(one.get("topic") or one.get("domain") or title or number)
                for number, (one, title) in enumerate(zip(about, titles, strict=True))
            ]
        ),
        queries=[query["text"] for query in queries],
        query_vectors=embed([query["text"] for query in queries]),
        golds=np.array([gold[query["_id"]] for query in queries]),
    )


def _installed(found: labelled.Collection, embed: Embed) -> Collection:
    row = {passage.id: number for number, passage in enumerate(found.passages)}
    texts, queries = [each.text for each in found.passages], [*found.queries.values()]
    return Collection(
        name=found.name,
        texts=texts,
        titles=[*row],
        vectors=embed(texts),
        topics=np.array([re.sub(r"[.:]\w+$", "", id) for id in row]),
        queries=queries,
        query_vectors=embed(queries),
        golds=np.array([row[next(iter(found.relevant[query]))] for query in found.queries]),
    )


def split(collection: Collection, collections: list[Collection]) -> Split:
    """Hold out a third of the topics, and of the questions about the rest fit on every second."""
    rng = np.random.default_rng(SEED)
    topics = rng.permutation(np.unique(collection.topics))
    out = np.isin(collection.topics, topics[: len(topics) // 3])
    about = rng.permutation(np.flatnonzero(~out[collection.golds]))
    half = len(about) // 2
    rng = np.random.default_rng(SEED)
    others = [
        Asked(other, rng.permutation(len(other.queries))[:MOST_NEGATIVES])
        for other in collections
        if other is not collection
    ]
    held_out = Asked(collection, np.flatnonzero(out[collection.golds]))
    return Split(
        collection,
        np.flatnonzero(~out),
        about[:half],
        Asked(collection, about[half:]),
        {HELD_OUT: [held_out]} | ({OTHERS: others} if others else {}),
    )


def key_phrases(texts: Sequence[str]) -> list[str]:
    words = WordCoverage.of(texts)
    return [telling_words(text, words) for text in texts]


def first_sentences(texts: Sequence[str]) -> list[str]:
    return [re.split(r"(?<=[.!?])\s+", text.strip(), maxsplit=1)[0] for text in texts]


def sources(each: Split, embed: Embed) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the kinds of pseudo-queries: rows of the split's passages, and vectors."""
    collection = each.collection
    place = {row: number for number, row in enumerate(each.rows.tolist())}
    every = np.arange(len(each.rows))
    given = np.array([place[row] for row in collection.golds[each.fitted].tolist()])
    return {
        "given questions": (given, collection.query_vectors[each.fitted]),
        "key phrases": (every, embed(key_phrases(each.texts))),
        "titles": (every, embed([collection.titles[row] or " " for row in each.rows])),
        "first sentences": (every, embed(first_sentences(each.texts))),
    }


def fit(
    vectors: np.ndarray, owners: np.ndarray, pseudo: np.ndarray, foreign: np.ndarray
) -> VectorCandidates:
    """Fit a gate on pseudo-queries of the passages in the rows `owners`."""
    ids = [str(number) for number in range(len(vectors))]
    return VectorCandidates.fit(
        ids,
        vectors,
        [ids[row] for row in owners],
        pseudo,
        lambda texts: foreign,
        negatives=[""] * len(foreign),
    )


def highest(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (queries @ vectors.T).max(axis=1)


def balanced(positives: np.ndarray, negatives: np.ndarray, edge: float) -> float:
    return float(((positives >= edge).mean() + (negatives < edge).mean()) / 2)


def best_edge(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Return the edge that labels would choose."""
    edges = np.quantile(np.concatenate([positives, negatives]), np.linspace(0, 1, 500))
    return float(max(edges, key=lambda edge: balanced(positives, negatives, edge)))


def measured(hits: np.ndarray, refusals: np.ndarray) -> str:
    """Recall, specificity and their mean, with bootstrap intervals over the questions."""
    rng = np.random.default_rng(SEED)
    drawn = [rng.binomial(len(each), each.mean(), 2000) / len(each) for each in (hits, refusals)]
    drawn.append(np.mean(drawn, axis=0))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=1)
    recall, specificity = (
        f"{each.mean():.2f} [{low[at]:.2f}, {high[at]:.2f}]"
        for at, each in enumerate((hits, refusals))
    )
    mean = (hits.mean() + refusals.mean()) / 2
    return f"{recall} / {specificity} -> {mean:.3f} [{low[2]:.3f}, {high[2]:.3f}]"
