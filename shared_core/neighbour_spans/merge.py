"""Merging windows that overlap or touch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shared_core.neighbour_spans.chunks import Chunk
from shared_core.neighbour_spans.sweep import Window


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
