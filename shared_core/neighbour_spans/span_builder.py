"""From windows to spans: merged, scored, and cut to the budget."""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import SupportsIndex

from shared_core.neighbour_spans.budget import add_neighbours, admit_chunks, parts_of
from shared_core.neighbour_spans.chunks import Chunk, Seed
from shared_core.neighbour_spans.merge import chains
from shared_core.neighbour_spans.score import Scorer
from shared_core.neighbour_spans.spans import Span, Stop
from shared_core.neighbour_spans.stitch import stitch
from shared_core.neighbour_spans.sweep import Window


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
        Orders the chunks of all windows for the budget: all of them if the seeds alone exceed it,
        otherwise the neighbours, after the seeds. None: neighbours by span and distance.
    """

    windows: Sequence[Window]
    score: Scorer
    count_tokens: Callable[[str], int]
    budget: int | None
    by_worth: Callable[[Sequence[Window]], Sequence[Chunk]] | None
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
        if self.budget is None or self._fits(whole, self.budget):
            found = [span for chain in whole for span in self._spans(chain, [range(len(chain))])]
        else:
            found = self._trimmed(whole, self.budget)
        return sorted(found, key=lambda span: (-span.score.total, self._rank(span.chunks)))

    def _fits(self, whole: Sequence[Sequence[Chunk]], left: int) -> bool:
        for chain in whole:
            left -= self._cost(chain)
            if left < 0:  # no need to count the others
                return False
        return True

    def _trimmed(self, whole: Sequence[Sequence[Chunk]], budget: int) -> list[Span]:
        """Spend the budget on the seeds, then on the neighbours, span by span."""
        following = {first.id: second.id for chain in whole for first, second in pairwise(chain)}
        centres = [window.centre for window in self.windows]
        kept, left = admit_chunks(centres, following, self._cost, budget)
        found: Sequence[Chunk] = centres
        if self.by_worth is not None:
            found = self.by_worth(self.windows)
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
            if self.by_worth is not None:
                parts = self._seeded(chain, kept)
            else:
                parts, left = add_neighbours(chain, kept, self._cost, left)
            spans += self._spans(chain, parts)
        return spans

    def _seeded(self, chain: Sequence[Chunk], kept: Container[str]) -> list[range]:
        """Return the kept parts of a chain that contain a seed."""
        parts = parts_of({place for place, chunk in enumerate(chain) if chunk.id in kept})
        return [part for part in parts if any(chain[at].id in self._seeds for at in part)]

    def _spans(self, chain: Sequence[Chunk], parts: Sequence[range]) -> list[Span]:
        """Build the spans of the kept parts of a chain."""
        ends = [0, *(part.stop for part in parts)]
        starts = [*(part.start for part in parts), len(chain)]
        spans = []
        for at, part in enumerate(parts):
            chunks = tuple(chain[part.start : part.stop])
            ids = [chunk.id for chunk in chunks if chunk.id in self._ranks]
            ids.sort(key=self._ranks.__getitem__)
            earlier, later = chain[ends[at] : part.start], chain[part.stop : starts[at + 1]]
            text, tokens = self._stitched(chunks)
            before, after = self._stops
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
        before: dict[str, Stop] = {}
        after: dict[str, Stop] = {}
        for window in self.windows:
            for known, chunk, stop in (
                (before, window.chunks[0], window.before),
                (after, window.chunks[-1], window.after),
            ):
                if known.get(chunk.id, "window") in ("window", "auto"):  # the least specific
                    known[chunk.id] = stop
        return before, after


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
