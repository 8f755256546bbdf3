"""Spans: the result of an expansion, and how each came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, Seed

Stop: TypeAlias = Literal[
    "document", "heading", "continuity", "missing", "window", "auto", "budget"
]
"""Why a side of a span ends: the document does; another heading begins and its continuity is
unknown, or known and too low; the neighbour is missing or not known; the window ends;
``window="auto"`` judged the next chunk too far away; the budget did not allow more."""


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
        Share of the best seed's section that is present, in [0, 1]; 1 if its first chunk is.
    continuity_from, parent_from
        Basis of the part, for people.
    """

    total: float
    similarity: float
    adjacency: float
    continuity: float
    parent: float
    continuity_from: str
    parent_from: str


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive chunks of one document, and their text.

    Attributes
    ----------
    document
        Id of the document.
    chunks
        The chunks, in document order.
    seeds
        The seeds among them, best first.
    text
        The text of the chunks; overlaps occur once.
    score
        The score and its parts.
    tokens
        Number of tokens of `text`.
    trimmed
        Neighbours on either side that did not fit into the budget, in document order.
    before, after
        Why it does not begin earlier, and why it does not continue.
    """

    document: str
    chunks: tuple[Chunk, ...]
    seeds: tuple[Seed, ...]
    text: str
    score: SpanScore
    tokens: int
    trimmed: tuple[Chunk, ...]
    before: Stop
    after: Stop

    def explain(self) -> dict[str, Any]:
        """Return how the span came about, as a JSON-able dictionary."""
        score = self.score
        return {
            "score": score.total,
            "similarity": score.similarity,
            "adjacency": score.adjacency,
            "continuity": score.continuity,
            "parent": score.parent,
            "continuity_from": score.continuity_from,
            "parent_from": score.parent_from,
            "document": self.document,
            "chunks": [chunk.id for chunk in self.chunks],
            "seeds": {seed.chunk.id: seed.score for seed in self.seeds},
            "trimmed": [chunk.id for chunk in self.trimmed],
            "before": self.before,
            "after": self.after,
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True)
class Expansion:
    """The spans of one query.

    Attributes
    ----------
    spans
        Best first.
    slots
        Slot -> rank of the span, in the requested order. A caller with another placement places
        `spans` instead.
    dropped
        Seeds that did not fit into the budget, best first.
    """

    spans: tuple[Span, ...]
    slots: tuple[int, ...]
    dropped: tuple[Seed, ...]

    @property
    def placed(self) -> list[Span]:
        """Slot -> span."""
        return [self.spans[rank] for rank in self.slots]

    def explain(self, rank: int) -> dict[str, Any]:
        """Return how the span of a rank came about, as a JSON-able dictionary.

        It is that of `Span.explain`, and ``dropped``: the ids of the seeds that are in no span, as
        they did not fit into the budget, best first; the same for each span.
        """
        dropped = [seed.chunk.id for seed in self.dropped]
        return {**self.spans[rank].explain(), "dropped": dropped}

    @property
    def tokens(self) -> int:
        """Number of tokens of all spans."""
        return sum(span.tokens for span in self.spans)
