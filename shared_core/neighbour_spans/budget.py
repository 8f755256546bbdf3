"""Spans, cut to a token budget."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, SupportsIndex, TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, Seed, stitch
from shared_core.neighbour_spans.score import Scorer, SpanScore
from shared_core.neighbour_spans.sweep import Window, chains

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
    """

    document: str
    chunks: tuple[Chunk, ...]
    seeds: tuple[Seed, ...]
    text: str
    score: SpanScore
    tokens: int
    trimmed: tuple[Chunk, ...]

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
    entering
        Windows -> their chunks, each once, the best seed first, in the order in which they enter
        the budget if the seeds alone exceed it; otherwise all seeds come before the others.
    """

    windows: Sequence[Window]
    score: Scorer
    count_tokens: Callable[[str], int]
    budget: int | None
    entering: Callable[[Sequence[Window]], list[Chunk]]
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
        """Spend the budget on the seeds, if all fit, and on the neighbours."""
        following = {first.id: second.id for chain in whole for first, second in pairwise(chain)}
        centres = [window.centre for window in self.windows]
        found = self.entering(self.windows)
        kept = admit_chunks(centres, following, self._cost, budget)
        if len(kept) == len(centres):
            found = [*centres, *(chunk for chunk in found if chunk.id not in kept)]
        kept = admit_chunks(found, following, self._cost, budget)
        # Around a seed that is left out, neighbours make no span: others get their tokens.
        around = [window.chunks for window in self.windows if window.centre.id in kept]
        near = {chunk.id for chunks in around for chunk in chunks}
        if not kept <= near:
            found = [chunk for chunk in found if chunk.id in near]
            kept = admit_chunks(found, following, self._cost, budget)
        spans = self._around(kept)
        # If windows contradict each other, the chains may differ without those that are left out.
        taken = [chunk.id for chunk in found if chunk.id in kept]
        while sum(span.tokens for span in spans) > budget:
            kept.remove(taken.pop())
            spans = self._around(kept)
        return spans

    def _around(self, kept: Container[str]) -> list[Span]:
        """Build the spans of what is kept."""
        spans = []
        for chain in chains([window for window in self.windows if window.centre.id in kept]):
            parts = parts_of({place for place, chunk in enumerate(chain) if chunk.id in kept})
            spans += self._spans(
                chain, [part for part in parts if any(chain[at].id in self._ranks for at in part)]
            )
        return spans

    def _spans(self, chain: Sequence[Chunk], parts: Sequence[range]) -> list[Span]:
        """Build the spans of the kept parts of a chain."""
        ends = [0, *(part.stop for part in parts)]
        starts = [*(part.start for part in parts[1:]), len(chain)]
        spans = []
        for part, end, start in zip(parts, ends, starts, strict=False):
            chunks = tuple(chain[part.start : part.stop])
            ids = [id for id in self._ranks if id in {chunk.id for chunk in chunks}]
            text, tokens = self._stitched(chunks)
            spans.append(
                Span(
                    document=chunks[0].document,
                    chunks=chunks,
                    seeds=tuple([self._seeds[id] for id in ids]),
                    text=text,
                    score=self.score(chunks, self._seeds),
                    tokens=tokens,
                    trimmed=(*chain[end : part.start], *chain[part.stop : start]),
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
) -> set[str]:
    """Return the ids of the chunks that fit into the budget.

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
    return {*pieces}


def parts_of(places: set[int]) -> list[range]:
    """Return places, at least one, as ranges, ascending."""
    ordered = sorted(places)
    starts = [place for place in ordered if place - 1 not in places]
    ends = [place + 1 for place in ordered if place + 1 not in places]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]
