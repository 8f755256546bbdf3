"""The gate's policies and sources of pseudo-queries, on labelled collections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.gating_collections import (
    OTHERS,
    SEED,
    Asked,
    Collection,
    Embed,
    Split,
    best_edge,
    fit,
    key_phrases,
    measured,
    sources,
    split,
)
from shared_core.gating import VectorCandidates, WordCoverage

POLICIES = ("calibrated", "density", "minimum", "lower_quartile", "mean", "median")
TABLE_I = "positive: 95% above 0.55, median above 0.71; negative: 95% below 0.21, median below 0.04"


def separations(collections: list[Collection]) -> None:
    """Print how far the questions' own passages stand out of the others."""
    for collection in collections:
        _separation(collection)
    print(f"  CAG, Table I, with another model: {TABLE_I}")


def _separation(collection: Collection) -> None:
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


def policies(splits: list[Split], everyday: np.ndarray, embed: Embed) -> None:
    """Print every policy's accuracy, fitted on every kind of pseudo-query."""
    print("\nRecall / specificity -> balanced accuracy [95% interval]; always retrieving: 0.500")
    for each in splits:
        _policies(each, everyday, embed)


def _policies(each: Split, everyday: np.ndarray, embed: Embed) -> None:
    positives = each.nearest([each.positives])
    negatives = {side: each.nearest(asked) for side, asked in each.negatives.items()}
    print(f"\n{each.collection.name}: {len(each.rows)} passages, {len(positives)} positives")
    for what, (owners, pseudo) in sources(each, embed).items():
        gate = fit(each.vectors, owners, pseudo, everyday)
        for policy in POLICIES:
            edge = replace(gate, policy=policy).edge
            cells = [
                f"{side}: {measured(positives >= edge, found < edge)}"
                for side, found in negatives.items()
            ]
            print(f"  {what:16}{policy!s:15} edge {edge:.3f}  " + "   ".join(cells))
        if what == "key phrases":
            _with_words(each, "and words", gate)
            _with_words(each, "without parts", replace(gate, neighbouring=np.empty(0)))
    for side, found in negatives.items():
        best = best_edge(positives, found)
        print(
            f"  best threshold with labels, {side}: {best:.3f} "
            f"{measured(positives >= best, found < best)}"
        )


def _with_words(each: Split, what: str, gate: VectorCandidates) -> None:
    """Print how well the similarity decides together with the words of the question."""
    coverage = WordCoverage.of(each.texts)

    def retrieved(asked: Sequence[Asked]) -> np.ndarray:
        found = [pair for part in asked for pair in each.evidence(part, coverage)]
        return np.array([gate.decide(near, coverage=share).retrieve for near, share in found])

    yes = retrieved([each.positives])
    cells = [
        f"{side}: {measured(yes, ~retrieved(asked))}" for side, asked in each.negatives.items()
    ]
    print(f"  {'key phrases':16}{what:28}" + "   ".join(cells))


def passages(collections: list[Collection], everyday: np.ndarray, embed: Embed) -> None:
    """Print the separation that a fit tells, and what is so where any passage may be missing."""
    print("\nEach passage as a topic of its own: the separation that the fit tells, and what is so")
    for collection in collections:
        each = split(replace(collection, topics=np.arange(len(collection.texts))), [])
        pseudo = embed(key_phrases(each.texts))
        gate = fit(each.vectors, np.arange(len(pseudo)), pseudo, everyday)
        _with_words(each, f"{collection.name:30}{gate.separation:.3f}  ", gate)


def transfer(splits: list[Split], everyday: np.ndarray) -> None:
    """Fit on one collection's given questions and decide on the others, as one bar."""
    print("\nOne collection's fit on given questions, applied to the others (not recommended)")
    for source in (each.collection for each in splits):
        gate = fit(source.vectors, source.golds, source.query_vectors, everyday)
        for policy in ("calibrated", "density"):
            edge = replace(gate, policy=policy).edge
            cells = []
            for each in splits:
                if each.collection is not source:
                    retrieved = each.nearest([each.positives]) >= edge
                    refused = each.nearest(each.negatives[OTHERS]) < edge
                    mean = (retrieved.mean() + refused.mean()) / 2
                    cells.append(f"{each.collection.name} {mean:.3f}")
            print(f"  {source.name:30}{policy:12} edge {edge:.3f}  " + "  ".join(cells))
