"""Windows that overlap or touch become one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shared_core.expansion.chunks import Chunk
from shared_core.expansion.sweep import Window


def chains(windows: Sequence[Window]) -> list[list[Chunk]]:
    """Return the chunks of all windows in chains of neighbours, each chunk once.

    Who follows whom is what the windows say, so a source that knows links alone needs no numbers.
    Where windows contradict each other the first is believed, and a loop is cut open; a neighbour
    that is thereby cut off from every seed is left out.

    Returns
    -------
    list of list of Chunk
        Each in the order of its document.
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
    found = [_from(head, following, left) for head in heads]
    while left:
        found.append(_from(next(iter(left)), following, left))
    centres = {window.centre.id for window in windows}
    return [chain for chain in found if not centres.isdisjoint([chunk.id for chunk in chain])]


def _from(head: str, following: dict[str, str], left: dict[str, Chunk]) -> list[Chunk]:
    """Take the chunks from a head on out of those that are left."""
    id: str | None = head
    chain = []
    while id is not None and id in left:
        chain.append(left.pop(id))
        id = following.get(id)
    return chain
