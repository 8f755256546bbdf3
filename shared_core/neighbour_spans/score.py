"""The score of a span: similarity, adjacency, continuity and the parent, weighted.

RetriVex: ``score = w0 * similarity + w1 * adjacency + w2 * continuity + w3 * parent``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood, Seed
from shared_core.neighbour_spans.sweep import Continuity, headings_differ

Weights = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class SpanScore:
    """The score of a span and its four parts, before weighting.

    Attributes
    ----------
    total
        Weighted sum of the parts.
    similarity
        Score of the best seed, on the scale of the seeds.
    adjacency
        How close its seeds are to each other: mean over the seeds of the sum over the seeds of
        ``exp(-decay * distance)``. 1 for one seed.
    continuity
        Mean cosine of adjacent chunks, in [-1, 1]; 1 for one chunk; 0 if unknown.
    parent
        1 if the first chunk of the best seed's section is present, where its heading stands, or its
        summary; else 0.
    continuity_from
        Basis of the continuity, for people.
    """

    total: float
    similarity: float
    adjacency: float
    continuity: float
    parent: float
    continuity_from: str


def adjacency(places: Sequence[int], decay: float) -> float:
    """Return how close seeds are to each other: the sum over all pairs, over their number.

    ``sum(exp(-decay * abs(s - t)) for s in places for t in places) / len(places)``: 1 for one
    seed, and another at distance 1, 2, 3 adds 0.50, 0.25, 0.12 at a decay of 0.7. RetriVex sums
    over the neighbours as well, which are close by construction: there a span gains by every
    chunk, here only by hits that support each other. Less than ``1 / tanh(decay / 2)`` for any
    number of seeds.

    Parameters
    ----------
    places
        Places of the seeds in their document, ascending and distinct, at least one.
    decay
        Cost of a distance of 1, at least 0.
    """
    nearer = math.exp(-decay)
    to_earlier = pairs = 0.0
    for before, place in pairwise(places):
        to_earlier = (to_earlier + 1) * nearer ** (place - before)
        pairs += to_earlier
    return 1 + 2 * pairs / len(places)


class Scorer:
    """Scores spans of one query.

    Parameters
    ----------
    neighbourhoods
        One per seed.
    reach
        Neighbours on each side that the source was asked for.
    weights, decay
        As in `NeighbourSpans`.
    continuity
        Cosine of two adjacent chunks; None: the source has no embeddings.
    """

    def __init__(
        self,
        neighbourhoods: Sequence[Neighbourhood],
        reach: int,
        weights: Weights,
        decay: float,
        continuity: Continuity | None,
    ) -> None:
        self._weights, self._decay, self._continuity = weights, decay, continuity
        self._opening = set[str]()
        for around in neighbourhoods:
            pairs = pairwise(around.run)
            self._opening |= {
                second.id for first, second in pairs if headings_differ(first, second)
            }
            if len(around.before) < reach and around.run[0].heading is not None:
                self._opening.add(around.run[0].id)  # nothing is known before it

    def __call__(self, chunks: Sequence[Chunk], seeds: Mapping[str, Seed]) -> SpanScore:
        """Score the span of these chunks.

        Parameters
        ----------
        chunks
            In document order.
        seeds
            Chunk id -> seed, for at least one of the chunks.
        """
        places = [place for place, chunk in enumerate(chunks) if chunk.id in seeds]
        best = max(places, key=lambda place: seeds[chunks[place].id].score)
        similarity = seeds[chunks[best].id].score
        near = adjacency(places, self._decay)
        flow, flow_from = self._flow(chunks)
        parent = self._parent(chunks, best)
        parts = similarity, near, flow, parent
        total = sum(weight * part for weight, part in zip(self._weights, parts, strict=True))
        return SpanScore(total, *parts, flow_from)

    def _flow(self, chunks: Sequence[Chunk]) -> tuple[float, str]:
        if self._continuity is None:
            return 0.0, "unknown: the source has no embeddings"
        if len(chunks) == 1:
            return 1.0, "one chunk"
        pairs = list(pairwise(chunks))
        known = [cosine for a, b in pairs if (cosine := self._continuity(a, b)) is not None]
        if not known:
            return 0.0, "unknown: the chunks have no embeddings"
        return sum(known) / len(known), f"{len(known)} of {len(pairs)} pairs of adjacent chunks"

    def _parent(self, chunks: Sequence[Chunk], best: int) -> float:
        first = best
        while first > 0 and not headings_differ(chunks[first - 1], chunks[first]):
            first -= 1
        return float(chunks[first].id in self._opening)
