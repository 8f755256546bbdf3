"""The sweep: from each seed outwards, until something stops it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from shared_core.neighbour_spans.chunks import Chunk, End, Neighbourhood, Seed
from shared_core.neighbour_spans.spans import Stop

Continuity: TypeAlias = Callable[[Chunk, Chunk], float | None]
"""Two adjacent chunks -> cosine of their embeddings; None where unknown."""


@dataclass(frozen=True, slots=True)
class Window:
    """The chunks that the sweep from one seed covers.

    Attributes
    ----------
    seed
        The seed as given by the caller.
    chunks
        The chunks, in document order.
    next
        The chunk after the last one, if any; another window may begin there.
    before, after
        Why it begins and ends there.
    neighbourhood
        The answer of the source.
    """

    seed: Seed
    chunks: Sequence[Chunk]
    next: Chunk | None
    before: Stop
    after: Stop
    neighbourhood: Neighbourhood

    @property
    def centre(self) -> Chunk:
        """The seed's chunk as it is in the source."""
        return self.neighbourhood.seed


def sweep(
    seed: Seed,
    around: Neighbourhood,
    reach: tuple[int, int],
    limit: Stop,
    continuity: Continuity,
    min_continuity: float | None,
) -> Window:
    """Return a seed and its neighbours up to `reach`, or up to where a side is blocked.

    Parameters
    ----------
    seed, around
        The seed and its neighbours.
    reach
        Most neighbours before and after.
    limit
        Name of a stop at `reach`.
    continuity, min_continuity
        A change of heading blocks unless the continuity of the two chunks is known and at least
        `min_continuity`. If that is None, headings do not count.
    """
    run, at = around.run, len(around.before)

    def side(step: int, count: int, end: End) -> tuple[int, Stop]:
        for inner in range(at, at + step * count, step):
            outer = inner + step
            if not 0 <= outer < len(run):
                return inner, limit if end == "more" else end
            if min_continuity is not None and headings_differ(run[inner], run[outer]):
                cosine = continuity(*(run[i] for i in sorted((inner, outer))))
                if cosine is None or cosine < min_continuity:
                    return inner, "heading" if cosine is None else "continuity"
        last = at + step * count
        ends = last == (len(run) - 1 if step > 0 else 0)
        if ends and (end == "document" or (end == "missing" and limit == "auto")):
            return last, end
        return last, limit

    first, before = side(-1, reach[0], around.before_end)
    last, after = side(1, reach[1], around.after_end)
    following = run[last + 1] if last + 1 < len(run) else None
    return Window(seed, run[first : last + 1], following, before, after, around)


def headings_differ(first: Chunk, second: Chunk) -> bool:
    """Return whether two chunks are known to be under different headings."""
    one, other = first.heading, second.heading
    return one is not other and one is not None and other is not None and one != other


def section_openings(run: Sequence[Chunk], end: End) -> set[str]:
    """Return the ids of the chunks of a run that are known to be first under their heading.

    Parameters
    ----------
    run
        Consecutive chunks, in document order.
    end
        What lies before the first chunk.
    """
    found = {second.id for first, second in pairwise(run) if headings_differ(first, second)}
    if end == "document" and run[0].heading is not None:
        found.add(run[0].id)
    return found
