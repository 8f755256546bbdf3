"""From each seed outwards, until something stops it; and what becomes of windows that touch.

``window="auto"`` takes neighbours only where they are worth more than the next hits: a neighbour
costs as many tokens as another hit, so the two compete. A hit is worth its score. A chunk next to a
better hit is worth a weighted mean of both scores; the weight of the hit halves with every `HALF`
tokens of distance. So small chunks get more neighbours than large ones, and a hit far ahead of the
next ones gets more than one among equals. ``python -m benchmarks.neighbour_spans`` compares it with
fixed windows, and with as many tokens of hits alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood, Seed
from shared_core.tokens import estimate_tokens

WIDEST = 4
"""Most neighbours on a side."""

HALF = 115
"""Tokens from middle to middle over which the weight of a hit halves: about 400 characters."""

FAR = 2 * HALF
"""Tokens from middle to middle beyond which a neighbour counts as unrelated."""

Continuity: TypeAlias = Callable[[Chunk, Chunk], float | None]
"""Two adjacent chunks -> cosine of their embeddings; None where unknown."""


@dataclass(frozen=True, slots=True)
class Window:
    """The chunks that the sweep from one seed covers.

    Attributes
    ----------
    seed
        The seed as given by the caller.
    centre
        Its chunk as it is in the source.
    before, after
        Its neighbours on either side, in document order.
    next
        The chunk after the last one, if any; another window may begin there.
    """

    seed: Seed
    centre: Chunk
    before: Sequence[Chunk]
    after: Sequence[Chunk]
    next: Chunk | None

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks, in document order."""
        return [*self.before, self.centre, *self.after]


def sweep(
    seed: Seed,
    around: Neighbourhood,
    reach: tuple[int, int],
    continuity: Continuity | None,
    min_continuity: float | None,
) -> Window:
    """Return a seed and its neighbours up to `reach`, or up to where a side is blocked.

    Parameters
    ----------
    seed, around
        The seed and its neighbours.
    reach
        Most neighbours before and after.
    continuity, min_continuity
        A change of heading blocks unless the continuity of the two chunks is known and at least
        `min_continuity`. If that is None, headings do not count.
    """

    def blocks(first: Chunk, second: Chunk) -> bool:
        if min_continuity is None or not headings_differ(first, second):
            return False
        cosine = None if continuity is None else continuity(first, second)
        return cosine is None or cosine < min_continuity

    run, at = around.run, len(around.before)
    first = last = at
    while first > max(0, at - reach[0]) and not blocks(run[first - 1], run[first]):
        first -= 1
    while last < min(len(run) - 1, at + reach[1]) and not blocks(run[last], run[last + 1]):
        last += 1
    following = run[last + 1] if last + 1 < len(run) else None
    return Window(seed, around.seed, run[first:at], run[at + 1 : last + 1], following)


def headings_differ(first: Chunk, second: Chunk) -> bool:
    """Return whether two chunks are known to be under different headings."""
    one, other = first.heading, second.heading
    return one is not other and one is not None and other is not None and one != other


def chains(windows: Sequence[Window]) -> list[list[Chunk]]:
    """Return the chunks of all windows as chains of neighbours, each chunk once.

    The windows determine the order, so a source that has only links needs no numbers. If windows
    contradict each other, the first one wins, and a loop is cut open. Neighbours that this cuts
    off from every seed are left out.

    Returns
    -------
    list of list of Chunk
        Each in document order.
    """
    chunks = {chunk.id: chunk for window in windows for chunk in window.chunks}
    following: dict[str, str] = {}
    for window in windows:
        for first, second in pairwise(window.chunks):
            following.setdefault(first.id, second.id)
    for window in windows:
        if window.next is not None and window.next.id in chunks:
            following.setdefault(window.chunks[-1].id, window.next.id)
    preceded = {*following.values()}
    left = dict(chunks)
    heads = [id for id in chunks if id not in preceded]
    found = [_pop_chain(head, following, left) for head in heads]
    while left:
        found.append(_pop_chain(next(iter(left)), following, left))
    centres = {window.centre.id for window in windows}
    return [chain for chain in found if not centres.isdisjoint([chunk.id for chunk in chain])]


def _pop_chain(head: str, following: dict[str, str], left: dict[str, Chunk]) -> list[Chunk]:
    """Remove the chunks from a head on from those left, and return them."""
    id: str | None = head
    chain = []
    while id is not None and id in left:
        chain.append(left.pop(id))
        id = following.get(id)
    return chain


def related(neighbours: Neighbourhood) -> tuple[int, int]:
    """Return how many neighbours before and after a seed are near enough to be related.

    At most 4 each; the sweep may still stop earlier, at a heading.
    """
    before, after = (
        sum(distance <= FAR for distance in _distances(neighbours.seed, side[:WIDEST]))
        for side in (neighbours.before[::-1], neighbours.after)
    )
    return before, after


def by_worth(windows: Sequence[Window]) -> list[Chunk]:
    """Return the chunks of all windows, each once, in the order in which they enter a budget.

    A chunk's own score is that of its retrieval, or the lowest of all seeds. Next to a seed it is
    worth ``own + 2 ** (-distance / HALF) * (seed - own)``; of several values the highest counts.
    Scores may be on any scale: shifted or scaled they give the same order.

    Parameters
    ----------
    windows
        One per seed, best seed first, at least one.

    Returns
    -------
    list of Chunk
        The best seed first; chunks worth the same by their distance to a seed.
    """
    scores = {window.centre.id: window.seed.score for window in windows}
    lowest = min(scores.values())
    chunks: dict[str, Chunk] = {}
    worth: dict[str, tuple[float, float]] = {}
    for window in windows:
        around = [(window.centre, 0.0)]
        for side in (window.after, window.before[::-1]):
            around += zip(side, _distances(window.centre, side), strict=True)
        for chunk, distance in around:
            own = scores.get(chunk.id, lowest)
            value = own + 2 ** (-distance / HALF) * (window.seed.score - own)
            chunks.setdefault(chunk.id, chunk)
            worth[chunk.id] = max(worth.get(chunk.id, (value, -distance)), (value, -distance))
    return sorted(chunks.values(), key=lambda chunk: worth[chunk.id], reverse=True)


def seeds_first(windows: Sequence[Window]) -> list[Chunk]:
    """Return the chunks of all windows, each once: the seeds, then the neighbours of the best seed.

    They come nearest first, the one after a seed before the one in front of it.
    """
    chunks = {window.centre.id: window.centre for window in windows}
    for window in windows:
        for pair in zip_longest(window.after, window.before[::-1]):
            chunks |= {chunk.id: chunk for chunk in pair if chunk and chunk.id not in chunks}
    return [*chunks.values()]


def _distances(seed: Chunk, side: Sequence[Chunk]) -> Iterator[float]:
    """Yield the tokens from the middle of a seed to that of each chunk of a side, outwards."""
    distance, size = 0.0, estimate_tokens(seed.text)
    for chunk in side:
        outer = estimate_tokens(chunk.text)
        distance += (size + outer) / 2
        size = outer
        yield distance
