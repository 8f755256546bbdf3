"""Spans in the slots of a prompt: what `CAUS` returns when it expands passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, NamedTuple

from shared_core.neighbour_spans.budget import Expansion, Span
from shared_core.neighbour_spans.chunks import ChunkSource, Seed
from shared_core.neighbour_spans.method import NeighbourSpans
from shared_core.neighbour_spans.neighbours import PassageNeighbours
from shared_core.neighbour_spans.places import ChunkReader
from shared_core.types import Arrangement, Passage, Ranking


@dataclass(frozen=True, slots=True)
class ExpandedArrangement(Arrangement):
    """Spans put into slots.

    Like `Arrangement`, with spans for passages. `ranking` has one entry per span, the best span
    first: the scores of its best seed, and a passage with the id, metadata and source of the best
    seed and the text of the span.

    Attributes
    ----------
    seeds
        The ranking that was expanded.
    expansion
        The spans, and the seeds for which the budget had no room. Its own order is ignored.
    """

    seeds: Ranking
    expansion: Expansion

    @property
    def spans(self) -> list[Span]:
        """Slot -> span."""
        return [self.expansion.spans[rank] for rank in self.slots]

    def explain(self) -> list[dict[str, Any]]:
        """Return, slot by slot, what led to the seed, overlaid by what led to the span.

        ``score`` is the fused score of the best seed, ``span_score`` what the spans are ranked by.
        """
        seeds = super(ExpandedArrangement, self).explain()
        spans = map(self.expansion.explain, self.slots)
        return [{**why, **span} for why, span in zip(seeds, spans, strict=True)]


def expand_ranking(
    ranking: Ranking, spans: NeighbourSpans, reader: ChunkReader, source: ChunkSource
) -> tuple[Ranking, Expansion, list[list[int]]]:
    """Expand the passages of a ranking.

    Returns
    -------
    ranking : Ranking
        One entry per span, see `ExpandedArrangement`.
    expansion : Expansion
        The spans.
    ranks : list of list of int
        Rank of a span -> ranks of its seeds, the best first.

    Raises
    ------
    ValueError
        As `expand_passages`.
    """
    expansion, ranks = expand_passages(ranking.passages, ranking.scores, spans, reader, source)
    best = [of_span[0] for of_span in ranks]
    seeds = [ranking.passages[at] for at in best]
    spanned = [
        seed if len(span.chunks) == 1 else replace(seed, text=span.text)
        for seed, span in zip(seeds, expansion.spans, strict=True)
    ]
    return replace(ranking.at(best), passages=spanned), expansion, ranks


def expand_passages(
    passages: Sequence[Passage],
    scores: Sequence[float],
    spans: NeighbourSpans,
    reader: ChunkReader,
    source: ChunkSource | None,
) -> tuple[Expansion, list[list[int]]]:
    """Expand passages with their scores.

    Parameters
    ----------
    passages, scores
        What was retrieved.
    spans
        How it is expanded.
    reader
        Identifies the chunk of a passage.
    source
        Source of the neighbours. None: only those among `passages`.

    Returns
    -------
    expansion : Expansion
        The spans.
    places : list of list of int
        Rank of a span -> positions of its seeds in `passages`, the best first.

    Raises
    ------
    ValueError
        As `NeighbourSpans.expand`.
    """
    chunks = [reader.chunk(passage) for passage in passages]
    if source is None:
        source = PassageNeighbours(passages, reader)
    expansion = spans.expand([*starmap(Seed, zip(chunks, scores, strict=True))], source)
    first = {chunk.id: at for at, chunk in reversed([*enumerate(chunks)])}
    return expansion, [[first[seed.chunk.id] for seed in span.seeds] for span in expansion.spans]


class PlacedSpan(NamedTuple):
    """A span in its slot.

    Attributes
    ----------
    best
        Position of its best seed among the passages that were given.
    span
        The span.
    why
        What led to it, JSON-able: as `Expansion.explain`, with ``rank``, ``slot`` and
        ``placement``, the order of the spans.
    """

    best: int
    span: Span
    why: dict[str, Any]


def place_spans(
    passages: Sequence[Passage],
    scores: Sequence[float | None],
    spans: NeighbourSpans,
    reader: ChunkReader,
    source: ChunkSource | None,
    *,
    higher_is_better: bool = True,
) -> list[PlacedSpan]:
    """Expand passages from any retriever, and return the spans slot by slot, in their own order.

    Parameters
    ----------
    passages, spans, reader, source
        As in `expand_passages`.
    scores, higher_is_better
        As in `similarities`.

    Raises
    ------
    ValueError
        As `expand_passages` and `similarities`.
    """
    known = similarities(scores, higher_is_better=higher_is_better)
    expansion, places = expand_passages(passages, known, spans, reader, source)
    order = spans.order if isinstance(spans.order, str) else spans.order.name
    return [
        PlacedSpan(
            places[rank][0],
            expansion.spans[rank],
            {**expansion.explain(rank), "rank": rank, "slot": slot, "placement": order},
        )
        for slot, rank in enumerate(expansion.slots)
    ]


def similarities(scores: Sequence[float | None], *, higher_is_better: bool = True) -> list[float]:
    """Return one finite score for each seed from any retriever, higher is better.

    Distances (``higher_is_better=False``) are negated. A score that is missing, None or NaN, counts
    as the lowest of the others. If all are missing, the order decides: the first of n gets 1, the
    last ``1 / n``.

    Raises
    ------
    ValueError
        If a score is infinite.
    """
    sign = 1.0 if higher_is_better else -1.0
    given = [
        None if score is None or math.isnan(score) else sign * float(score) for score in scores
    ]
    known = [score for score in given if score is not None]
    if any(map(math.isinf, known)):
        raise ValueError(f"the scores must be finite, got {given}")
    if not known:
        return [(len(given) - rank) / len(given) for rank in range(len(given))]
    return [min(known) if score is None else score for score in given]
