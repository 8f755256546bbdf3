"""The token budget: seeds first, then neighbours, the nearest first."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeAlias

from shared_core.expansion.chunks import Chunk

Cost: TypeAlias = Callable[[Sequence[Chunk]], int]
"""Tokens of the stitched text of chunks that follow each other."""


def admitted(
    seeds: Sequence[Chunk], following: Mapping[str, str], cost: Cost, budget: int
) -> tuple[set[str], int]:
    """Return the ids of the seeds that the budget holds without any neighbour, and what is left.

    The best ones first; one that does not fit beside them is left out, and the next may still.

    Parameters
    ----------
    seeds
        Best first, at least one.
    following
        Id of a seed -> id of the seed that comes next to it in its document.
    cost, budget
        What they may cost together; seeds that follow each other are counted as one text.

    Raises
    ------
    ValueError
        If the best seed alone does not fit. A context without its best passage looks like any
        other, so nobody would notice; and the budget is a setting, to be mended once.
    """
    preceding = {second: first for first, second in following.items()}
    pieces: dict[str, tuple[tuple[Chunk, ...], int]] = {}
    nothing: tuple[tuple[Chunk, ...], int] = (), 0
    left = budget
    for chunk in seeds:
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


def grown(
    chain: Sequence[Chunk], seeds: Container[str], cost: Cost, left: int
) -> tuple[list[range], int]:
    """Return the parts of a chain to keep, if its neighbours may cost `left` tokens, and the rest.

    The seeds stay. Of their neighbours the nearest stay, the one after a seed before the one in
    front of it, until the next one in that order does not fit.

    Parameters
    ----------
    chain
        Chunks that follow each other, at least one seed among them.
    seeds
        Ids of the seeds.
    cost
        Asked for the seeds alone, and for what fits up to one neighbour more, if it guesses well.
    left
        Tokens for neighbours.

    Returns
    -------
    parts : list of range
        Places in the chain, ascending, with at least one chunk left out between two ranges.
    left : int
        Tokens that are still there.
    """
    hits = {place for place, chunk in enumerate(chain) if chunk.id in seeds}
    order = _nearest_first(len(chain), sorted(hits))

    def tokens(count: int) -> int:
        parts = parts_of({*hits, *order[:count]})
        return sum([cost(chain[part.start : part.stop]) for part in parts])

    alone = tokens(0)
    limit = alone + left
    count = _guess([len(chunk.text) for chunk in chain], hits, order, alone, left)
    spent = tokens(count) if count else alone
    while count > 0 and spent > limit:
        count -= 1
        spent = tokens(count)
    while count < len(order) and (more := tokens(count + 1)) <= limit:
        count, spent = count + 1, more
    return parts_of({*hits, *order[:count]}), limit - spent


def parts_of(places: set[int]) -> list[range]:
    """Return places, at least one, as ranges, ascending."""
    ordered = sorted(places)
    if ordered[-1] - ordered[0] < len(ordered):
        return [range(ordered[0], ordered[-1] + 1)]
    starts = [place for place in ordered if place - 1 not in places]
    ends = [place + 1 for place in ordered if place + 1 not in places]
    return [range(start, end) for start, end in zip(starts, ends, strict=True)]


def _guess(
    sizes: Sequence[int], hits: set[int], order: Sequence[int], alone: int, left: int
) -> int:
    """Return how many of the places in `order` fit, were tokens like the characters of the hits."""
    characters = sum([sizes[place] for place in hits])
    room = left * characters / alone if alone else 0.0
    count = 0
    while count < len(order) and sizes[order[count]] <= room:
        room -= sizes[order[count]]
        count += 1
    return count


def _nearest_first(length: int, hits: Sequence[int]) -> list[int]:
    """Return the places that are no hits, by the distance to a hit; what follows one first."""
    keys = []
    for place in range(length):
        distance, hit = min([(abs(place - hit), hit) for hit in hits])
        keys.append((distance, place < hit, place))
    return [place for _, _, place in sorted(keys)[len(hits) :]]
