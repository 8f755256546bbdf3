"""``window="auto"``: neighbours only where they are worth more than the next hits.

A neighbour costs as many tokens as another hit, so the two compete. A hit is worth its score. A
chunk next to a better hit is worth a weighted mean of both scores; the weight of the hit halves
with every `HALF` tokens of distance. So small chunks get more neighbours than large ones, and a
hit far ahead of the next ones gets more than one among equals.
``python -m benchmarks.neighbour_spans`` compares it with fixed windows, and with as many
tokens of hits alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared_core.neighbour_spans.chunks import Chunk, Neighbourhood
from shared_core.neighbour_spans.sweep import Window
from shared_core.tokens import estimate_tokens

WIDEST = 4
"""Most neighbours on a side."""

HALF = 115
"""Tokens from middle to middle over which the weight of a hit halves: about 400 characters."""

FAR = 2 * HALF
"""Tokens from middle to middle beyond which a neighbour counts as unrelated."""


def reach(neighbours: Neighbourhood) -> tuple[int, int]:
    """Return how many neighbours before and after a seed are near enough to be related.

    At most 4 each; the sweep may still stop earlier, at a heading.
    """
    before, after = (
        _count_near(neighbours.seed, side[:WIDEST])
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
        for chunk, distance in _around(window):
            own = scores.get(chunk.id, lowest)
            value = own + 2 ** (-distance / HALF) * (window.seed.score - own)
            chunks.setdefault(chunk.id, chunk)
            worth[chunk.id] = max(worth.get(chunk.id, (value, -distance)), (value, -distance))
    return sorted(chunks.values(), key=lambda chunk: worth[chunk.id], reverse=True)


def _around(window: Window) -> list[tuple[Chunk, float]]:
    """Return the chunks of a window and their distances to its seed, the seed first."""
    at = next(at for at, chunk in enumerate(window.chunks) if chunk.id == window.centre.id)
    after, before = window.chunks[at + 1 :], window.chunks[:at][::-1]
    found = [(window.centre, 0.0)]
    for side in (after, before):
        found += zip(side, _distances(window.centre, side), strict=True)
    return found


def _count_near(seed: Chunk, side: Sequence[Chunk]) -> int:
    """Return how many chunks of a side, from the seed outwards, are within `FAR`."""
    count = 0
    for distance in _distances(seed, side):
        if distance > FAR:  # so are all chunks beyond
            break
        count += 1
    return count


def _distances(seed: Chunk, side: Sequence[Chunk]) -> Iterator[float]:
    """Yield the tokens from the middle of a seed to that of each chunk of a side, outwards."""
    distance, size = 0.0, estimate_tokens(seed.text)
    for chunk in side:
        outer = estimate_tokens(chunk.text)
        distance += (size + outer) / 2
        size = outer
        yield distance
