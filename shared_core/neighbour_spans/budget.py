"""The token budget: seeds first, then neighbours, nearest first."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypeAlias

from shared_core.neighbour_spans.chunks import Chunk

Cost: TypeAlias = Callable[[Sequence[Chunk]], int]
"""Consecutive chunks -> tokens of their stitched text."""


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
        Called for the seeds alone, then with numbers of neighbours near an estimate.
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

    alone = tokens(0)
    limit = alone + left
    count = _estimate_fitting([len(chunk.text) for chunk in chain], hits, order, alone, left)
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


def _estimate_fitting(
    sizes: Sequence[int], hits: set[int], order: Sequence[int], alone: int, left: int
) -> int:
    """Return how many places in `order` fit, at as many tokens per character as in the hits."""
    characters = sum([sizes[place] for place in hits])
    room = left * characters / alone if alone else 0.0
    count = 0
    while count < len(order) and sizes[order[count]] <= room:
        room -= sizes[order[count]]
        count += 1
    return count


def _nearest_first(length: int, hits: Sequence[int]) -> list[int]:
    """Return the places without a hit by distance to the nearest; at a tie, after a hit first."""
    keys = []
    for place in range(length):
        distance, hit = min([(abs(place - hit), hit) for hit in hits])
        keys.append((distance, place < hit, place))
    return [place for _, _, place in sorted(keys)[len(hits) :]]
