"""RetriVex: neighbour spans within a token budget."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from shared_core.checking import check_count, check_counts_of
from shared_core.neighbour_spans.budget import Expansion, Span, SpanBuilder
from shared_core.neighbour_spans.chunks import ChunkSource, Neighbourhood, Seed
from shared_core.neighbour_spans.score import Scorer, Weights
from shared_core.neighbour_spans.sweep import (
    WIDEST,
    Continuity,
    by_worth,
    related,
    seeds_first,
    sweep,
)
from shared_core.placement import Placement, resolve_placement
from shared_core.tokens import estimate_tokens

_LARGEST = sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class NeighbourSpans:
    """Expands retrieved chunks by their neighbours into spans, within a token budget.

    Each seed takes in its neighbours outwards, until the window or the document ends, a chunk is
    missing, or another heading begins whose first chunk does not continue the last one. Nothing
    is skipped. Windows that overlap or touch make one span, scored as a whole.

    Attributes
    ----------
    window
        Neighbours on each side of a seed, at least 0; ``"auto"``: up to 4, fewer for larger
        chunks. If the seeds alone exceed the budget, neighbours then compete with worse seeds by
        their worth (`shared_core.neighbour_spans.sweep`): give more seeds than the budget holds.
    token_budget
        Most tokens of all spans together, at least 1; None: no limit. Every seed comes before any
        neighbour, except with ``"auto"``. The best seed gets its neighbours first, nearest first.
    min_continuity
        Cosine in [-1, 1] from which adjacent chunks are joined across a change of heading; None:
        headings do not count.
    weights
        Weights of similarity, adjacency, continuity and parent; finite, at least 0.
    decay
        Cost of a distance of one chunk between two seeds, at least 0; see `adjacency`.
    order
        Name in `PLACEMENTS`, ``"score_descending"``, or a placement that needs no profile.
    count_tokens
        Text -> tokens, with the tokenizer of the reading model. None: `estimate_tokens`. Called
        about once per span, and about once more per chunk if spans are trimmed.

    Raises
    ------
    ValueError
        If an option is out of range or unknown.
    """

    window: int | Literal["auto"] = 2
    token_budget: int | None = 2000
    min_continuity: float | None = 0.5
    weights: Weights = (1.0, 0.6, 0.2, 0.1)
    decay: float = 0.7
    order: str | Placement = "edge_balanced"
    count_tokens: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        if self.window != "auto":
            window = check_count(self.window, "window, unless it is 'auto',", 0)
            object.__setattr__(self, "window", window)
        check_counts_of(self, {"token_budget": 1}, optional=True)
        if self.min_continuity is not None and not _lies_in(self.min_continuity, -1, 1):
            raise ValueError(f"min_continuity must lie in [-1, 1], got {self.min_continuity!r}")
        weights = tuple(self.weights) if isinstance(self.weights, Iterable) else ()
        if len(weights) != 4 or not all(_lies_in(weight, 0, _LARGEST) for weight in weights):
            raise ValueError(f"weights must be four numbers >= 0, got {self.weights!r}")
        object.__setattr__(self, "weights", weights)
        if not _lies_in(self.decay, 0, _LARGEST):
            raise ValueError(f"decay must be finite and >= 0, got {self.decay!r}")
        if self.count_tokens is not None and not callable(self.count_tokens):
            raise ValueError(f"count_tokens must be a function, got {self.count_tokens!r}")
        self._placement(())

    @property
    def reach(self) -> int:
        """Neighbours per side that a source is asked for: one more than are taken.

        The extra one shows whether the next window touches.
        """
        return (WIDEST if self.window == "auto" else self.window) + 1

    def expand(self, seeds: Sequence[Seed], source: ChunkSource) -> Expansion:
        """Return the spans around `seeds`.

        Parameters
        ----------
        seeds
            The retrieved chunks and their scores; at a tie the first is better. If a chunk occurs
            twice, its better score counts.
        source
            Where neighbours, and optionally embeddings, come from.

        Raises
        ------
        ValueError
            If the budget is smaller than the best seed alone, or `count_tokens` does not return a
            number of tokens.
        """
        if not seeds:
            return Expansion((), (), ())
        found = source.around([seed.chunk for seed in seeds], self.reach)
        hits = _drop_duplicates(seeds, found)
        continuity = _look_up_continuity(source, [around for _, around in hits])
        windows = [
            sweep(
                seed,
                around,
                related(around) if self.window == "auto" else (self.window, self.window),
                continuity,
                self.min_continuity,
            )
            for seed, around in hits
        ]
        spans = SpanBuilder(
            windows=windows,
            score=Scorer(found, self.reach, self.weights, self.decay, continuity),
            count_tokens=self.count_tokens or estimate_tokens,
            budget=self.token_budget,
            entering=by_worth if self.window == "auto" else seeds_first,
        ).spans()
        kept = {seed.chunk.id for span in spans for seed in span.seeds}
        dropped = tuple(seed for seed, _ in hits if seed.chunk.id not in kept)
        return Expansion(tuple(spans), self._placement(spans), dropped)

    def _placement(self, spans: Sequence[Span]) -> tuple[int, ...]:
        name = "sequential" if self.order == "score_descending" else self.order
        placement = resolve_placement(name)
        return placement.of_places([span.chunks[0].place for span in spans])(len(spans))


def _lies_in(value: Any, least: float, most: float) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and least <= value <= most


def _drop_duplicates(
    seeds: Sequence[Seed], found: Sequence[Neighbourhood]
) -> list[tuple[Seed, Neighbourhood]]:
    """Return each chunk once with its best score, best first."""
    best: dict[str, tuple[Seed, Neighbourhood]] = {}
    hits = zip(seeds, found, strict=True)
    for seed, around in sorted(hits, key=lambda hit: -hit[0].score):
        best.setdefault(around.seed.id, (seed, around))
    return list(best.values())


def _look_up_continuity(source: ChunkSource, found: Sequence[Neighbourhood]) -> Continuity | None:
    """Ask the source once for all adjacent chunks; None if it has no embeddings."""
    if not hasattr(source, "continuity"):
        return None
    pairs = {(a.id, b.id): (a, b) for around in found for a, b in pairwise(around.run)}
    answers = source.continuity([*pairs.values()])
    if answers is None:
        return None
    cosines = dict(zip(pairs, answers, strict=True))
    return lambda first, second: cosines[first.id, second.id]
