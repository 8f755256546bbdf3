"""Spans, cut to a token budget: seeds first, then neighbours, nearest first."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex, TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, Seed, Stop, stitch
from shared_core.neighbour_spans.score import Scorer, SpanScore
from shared_core.neighbour_spans.sweep import Window, by_worth, chains

Cost: TypeAlias = Callable[[Sequence[Chunk]], int]
"""Consecutive chunks -> tokens of their stitched text."""


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
        """Return how the span came about, as a JSON-able dictionary.

        ``score`` is that of its best seed, ``span_score`` what spans are ranked by, and the other
        parts are those of `SpanScore`.
        """
        parts = asdict(self.score)
        return {
            "score": self.score.similarity,
            "span_score": parts.pop("total"),
            **parts,
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


@dataclass(frozen=True, kw_only=True)
class SpanBuilder:
    """Builds the spans of one query.

    Attributes
    ----------
    windows
        One per seed, best seed first.
    score
        Scores consecutive chunks with seeds among them.
    count_tokens
        Tokens of a text.
    budget
        Tokens of all spans together; None: no limit.
    by_worth
        Whether chunks enter the budget in the order of `by_worth`: all of them if the seeds alone
        exceed it, otherwise the neighbours, after the seeds. Else neighbours by span and distance.
    """

    windows: Sequence[Window]
    score: Scorer
    count_tokens: Callable[[str], int]
    budget: int | None
    by_worth: bool
    _texts: dict[tuple[str, ...], tuple[str, int]] = field(
        default_factory=dict, init=False, repr=False
    )

    def spans(self) -> list[Span]:
        """Return the spans, best first; at a tie, the better seed first.

        Raises
        ------
        ValueError
            If the best seed does not fit into the budget, or `count_tokens` does not return a
            number of tokens.
        """
        whole = chains(self.windows)
        # Not all are counted where a few exceed the budget.
        spent = accumulate(map(self._cost, whole))
        if self.budget is None or all(tokens <= self.budget for tokens in spent):
            found = [span for chain in whole for span in self._spans(chain, [range(len(chain))])]
        else:
            found = self._trimmed(whole, self.budget)
        return sorted(found, key=lambda span: (-span.score.total, self._rank(span.chunks)))

    def _trimmed(self, whole: Sequence[Sequence[Chunk]], budget: int) -> list[Span]:
        """Spend the budget on the seeds, then on the neighbours, span by span."""
        following = {first.id: second.id for chain in whole for first, second in pairwise(chain)}
        centres = [window.centre for window in self.windows]
        kept, left = admit_chunks(centres, following, self._cost, budget)
        found: Sequence[Chunk] = centres
        if self.by_worth:
            found = by_worth(self.windows)
            if len(kept) == len(centres):
                found = [*centres, *(chunk for chunk in found if chunk.id not in kept)]
            kept, left = admit_chunks(found, following, self._cost, budget)
        spans = self._around(kept, left)
        # If windows contradict each other, the chains may differ without those that are left out.
        taken = [chunk.id for chunk in found if chunk.id in kept]
        while (over := sum(span.tokens for span in spans) - budget) > 0:
            if left == 0:
                kept.remove(taken.pop())
            left = max(0, left - over)
            spans = self._around(kept, left)
        return spans

    def _around(self, kept: Container[str], left: int) -> list[Span]:
        """Build the spans of what is kept; without `by_worth`, add neighbours for `left` tokens."""
        rest = chains([window for window in self.windows if window.centre.id in kept])
        rest.sort(key=lambda chain: (-self.score(chain, self._seeds).total, self._rank(chain)))
        spans = []
        for chain in rest:
            if self.by_worth:
                parts = parts_of({place for place, chunk in enumerate(chain) if chunk.id in kept})
                parts = [part for part in parts if any(chain[at].id in self._ranks for at in part)]
            else:
                parts, left = add_neighbours(chain, kept, self._cost, left)
            spans += self._spans(chain, parts)
        return spans

    def _spans(self, chain: Sequence[Chunk], parts: Sequence[range]) -> list[Span]:
        """Build the spans of the kept parts of a chain."""
        before, after = self._stops
        ends = [0, *(part.stop for part in parts)]
        starts = [*(part.start for part in parts[1:]), len(chain)]
        spans = []
        for part, end, start in zip(parts, ends, starts, strict=False):
            chunks = tuple(chain[part.start : part.stop])
            ids = [id for id in self._ranks if id in {chunk.id for chunk in chunks}]
            earlier, later = chain[end : part.start], chain[part.stop : start]
            text, tokens = self._stitched(chunks)
            spans.append(
                Span(
                    document=chunks[0].document,
                    chunks=chunks,
                    seeds=tuple([self._seeds[id] for id in ids]),
                    text=text,
                    score=self.score(chunks, self._seeds),
                    tokens=tokens,
                    trimmed=(*earlier, *later),
                    before="budget" if earlier else before.get(chunks[0].id, "missing"),
                    after="budget" if later else after.get(chunks[-1].id, "missing"),
                )
            )
        return spans

    def _cost(self, chunks: Sequence[Chunk]) -> int:
        return self._stitched(chunks)[1]

    def _stitched(self, chunks: Sequence[Chunk]) -> tuple[str, int]:
        """Return the stitched text and its tokens, cached."""
        key = tuple([chunk.id for chunk in chunks])
        known = self._texts.get(key)
        if known is None:
            text = stitch(chunks)
            known = self._texts[key] = text, _check_token_count(self.count_tokens(text))
        return known

    def _rank(self, chunks: Sequence[Chunk]) -> int:
        """Return the rank of the best seed among chunks."""
        return min([self._ranks[chunk.id] for chunk in chunks if chunk.id in self._ranks])

    @cached_property
    def _seeds(self) -> dict[str, Seed]:
        return {window.centre.id: window.seed for window in self.windows}

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return {id: rank for rank, id in enumerate(self._seeds)}

    @cached_property
    def _stops(self) -> tuple[dict[str, Stop], dict[str, Stop]]:
        """Why windows begin and end: by id of the first chunk, and by id of the last.

        If windows contradict each other, a span may end at a chunk that is in neither.
        """
        before, after = dict[str, Stop](), dict[str, Stop]()
        for window in self.windows:
            _tell(before, window.chunks[0], window.before)
            _tell(after, window.chunks[-1], window.after)
        return before, after


def _tell(known: dict[str, Stop], chunk: Chunk, stop: Stop) -> None:
    if known.get(chunk.id, "window") in ("window", "auto"):  # the least specific
        known[chunk.id] = stop


def _check_token_count(tokens: SupportsIndex) -> int:
    try:
        found = operator.index(tokens)
    except TypeError:
        found = -1
    if found < 0:
        raise ValueError(
            "count_tokens must return the number of tokens of a text, an integer, got "
            f"{tokens!r:.60}: wrap a tokenizer as lambda text: len(tokenizer.encode(text))"
        )
    return found


def admit_chunks(
    chunks: Sequence[Chunk], following: Mapping[str, str], cost: Cost, budget: int
) -> tuple[set[str], int]:
    """Return the ids of the chunks that fit into the budget, and the tokens left.

    Best chunks first; one that does not fit is skipped, and later ones may still fit.

    Parameters
    ----------
    chunks
        Best first, at least one.
    following
        Id of a chunk -> id of the next chunk of its document.
    cost
        Consecutive chunks are counted as one text.
    budget
        Tokens of all chunks together.

    Raises
    ------
    ValueError
        If the best chunk alone does not fit. A context without its best passage looks like any
        other, so nobody would notice; an error is fixed once, in the settings.
    """
    preceding = {second: first for first, second in following.items()}
    pieces: dict[str, tuple[tuple[Chunk, ...], int]] = {}
    nothing: tuple[tuple[Chunk, ...], int] = (), 0
    left = budget
    for chunk in chunks:
        earlier, spent_earlier = pieces.get(preceding.get(chunk.id, ""), nothing)
        later, spent_later = pieces.get(following.get(chunk.id, ""), nothing)
        piece = (*earlier, chunk, *later)
        tokens = cost(piece)
        more = tokens - spent_earlier - spent_later
        if more <= left:
            left -= more
            pieces.update(dict.fromkeys([part.id for part in piece], (piece, tokens)))
        elif not pieces:
            raise ValueError(
                f"token_budget={budget} is smaller than the best chunk, {chunk.id!r}, which has "
                f"{more} tokens: raise the budget or make the chunks smaller"
            )
    return {*pieces}, left


def add_neighbours(
    chain: Sequence[Chunk], seeds: Container[str], cost: Cost, left: int
) -> tuple[list[range], int]:
    """Return the parts of a chain that fit, if its neighbours may cost `left` tokens.

    All seeds are kept. Their neighbours are added nearest first, the one after a seed before the
    one in front of it, until the next one does not fit.

    Parameters
    ----------
    chain
        Consecutive chunks with at least one seed among them.
    seeds
        Ids of the seeds.
    cost
        Called for the seeds alone, then for a few numbers of neighbours.
    left
        Tokens for neighbours.

    Returns
    -------
    parts : list of range
        Places in the chain, ascending, with at least one chunk left out between two ranges.
    left : int
        Tokens left.
    """
    hits = {place for place, chunk in enumerate(chain) if chunk.id in seeds}
    order = _nearest_first(len(chain), sorted(hits))

    def tokens(count: int) -> int:
        parts = parts_of({*hits, *order[:count]})
        return sum([cost(chain[part.start : part.stop]) for part in parts])

    limit = tokens(0) + left
    fitting = bisect_right(range(1, len(order) + 1), limit, key=tokens) if left else 0
    return parts_of({*hits, *order[:fitting]}), limit - tokens(fitting)


def parts_of(places: set[int]) -> list[range]:
    """Return places, at least one, as ranges, ascending."""
    ordered = sorted(places)
    starts = [place for place in ordered if place - 1 not in places]
    ends = [place + 1 for place in ordered if place + 1 not in places]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _nearest_first(length: int, hits: Sequence[int]) -> list[int]:
    """Return the places without a hit by distance to the nearest; at a tie, after a hit first."""

    def key(place: int) -> tuple[int, bool, int]:
        distance, hit = min([(abs(place - hit), hit) for hit in hits])
        return distance, place < hit, place

    return sorted(range(length), key=key)[len(hits) :]
