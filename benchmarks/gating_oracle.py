"""HyDE with a perfect model: a bound on what hypothetical passages can do, not a measurement.

The hypothetical passage of a question is the passage of the same topic (or title) that lies
nearest to the one that answers it, which is then not there to be found; where a topic has but one
passage, the first sentence of that. A question to be refused gets its passage in the same way
from its own collection, since a model writes about anything. So do the pseudo-queries.

No passage about an everyday question is at hand. In their place stand 80 passages about questions
of the other collections, which are not asked; no gate could know these, which flatters the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from benchmarks.gating_collections import (
    HELD_OUT,
    OTHERS,
    SEED,
    Asked,
    Collection,
    Embed,
    Split,
    first_sentences,
    fit,
)
from shared_core.gating import VectorCandidates, hyde
from shared_core.generation import as_generator

BACKGROUND = 80


@dataclass(frozen=True)
class Hypothetical:
    """What a perfect model would write in place of each passage of a collection.

    Attributes
    ----------
    texts
        One a passage.
    rows
        The passage that it was taken from and that must not be found; -1 for a first sentence.
    """

    texts: list[str]
    rows: np.ndarray

    @classmethod
    def of(cls, collection: Collection) -> Self:
        texts = first_sentences(collection.texts)
        rows = np.full(len(texts), -1)
        for topic in np.unique(collection.topics):
            alike = np.flatnonzero(collection.topics == topic)
            near = collection.vectors[alike] @ collection.vectors[alike].T
            wording = np.array([collection.texts[row] for row in alike], dtype=object)
            near[wording[:, None] == wording] = -np.inf  # itself, and copies
            for row, similarities in zip(alike, near, strict=True):
                if similarities.max() > -np.inf:
                    rows[row] = alike[similarities.argmax()]
                    texts[row] = collection.texts[rows[row]]
        return cls(texts, rows)


def oracle(
    each: Split, collections: Sequence[Collection], embed: Embed
) -> tuple[VectorCandidates, np.ndarray, dict[str, np.ndarray]]:
    """Return the gate, and the highest similarities of positives and of negatives."""
    written = {collection.name: Hypothetical.of(collection) for collection in collections}
    own = written[each.collection.name]

    def similarities(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
        known = written[asked.collection.name]
        vectors, golds = _through(asked, known, embed)
        near = vectors @ each.vectors.T
        if asked.collection is each.collection:
            near[known.rows[golds][:, None] == each.rows] = -np.inf
        return vectors, near.max(axis=1)

    others = [similarities(asked) for asked in each.negatives[OTHERS]]
    vectors, foreign = (np.concatenate(parts) for parts in zip(*others, strict=True))
    known = np.random.default_rng(SEED).choice(len(foreign), BACKGROUND, replace=False)
    pseudo = embed([own.texts[row] for row in each.rows])
    gate = fit(each.vectors, np.arange(len(each.rows)), pseudo, vectors[known])
    (held_out,) = each.negatives[HELD_OUT]
    return (
        gate,
        similarities(each.positives)[1],
        {HELD_OUT: similarities(held_out)[1], OTHERS: np.delete(foreign, known)},
    )


def _through(asked: Asked, known: Hypothetical, embed: Embed) -> tuple[np.ndarray, list[int]]:
    """Return vectors of what the hook makes of the questions, and the passages that answer."""
    golds = dict(zip(asked.texts, asked.collection.golds[asked.rows].tolist(), strict=True))
    model = as_generator(
        lambda queries: [known.texts[golds[query]] for query in queries], name="oracle"
    )
    vectors = embed([*map(hyde(model, prompt="{query}"), asked.texts)])
    return vectors, [golds[text] for text in asked.texts]
