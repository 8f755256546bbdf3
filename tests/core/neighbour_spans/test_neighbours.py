"""Neighbours of chunks in memory and in an index that is added to and deleted from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import HybridIndex
from shared_core.neighbour_spans import Chunk, DocumentNeighbours, Neighbourhood, PassageNeighbours
from tests.core.neighbour_spans.making import (
    GIVEN,
    neighbours,
    neighbours_of,
    passages_of,
    prose,
    split,
)

CHUNKS = split(prose(100))


def test_a_gap_in_the_numbers_is_a_missing_chunk() -> None:
    """Wherever the numbers begin, and whichever way one comes."""
    sparse = [replace(CHUNKS[0], id=str(n), number=n) for n in (7, 8, 10, 30)]
    at_8, at_10, at_30 = neighbours_of(sparse).around([sparse[1], sparse[2], sparse[3]], 3)
    assert [chunk.id for chunk in at_8.run] == ["7", "8"]
    assert (at_10.run, at_30.run) == ((sparse[2],), (sparse[3],))


def told(
    source: PassageNeighbours | DocumentNeighbours, chunks: Sequence[Chunk]
) -> tuple[list[Neighbourhood], dict[tuple[str, str], float | None]]:
    """Return all that a source knows of chunks: who stands around them, and how continuous."""
    given = zip(chunks, passages_of(chunks), strict=True)
    around = source.around([replace(chunk, source=passage) for chunk, passage in given], 3)
    pairs = [pair for each in around for pair in pairwise(each.run)]
    names = [(first.id, second.id) for first, second in pairs]
    return around, dict(zip(names, source.continuity(pairs) or [], strict=True))


@given(st.lists(st.tuples(st.sampled_from(["add", "delete", "compact"]), st.integers(0, 11))))
@pytest.mark.filterwarnings("ignore:no passage says which chunk")
def test_adding_and_deleting_leaves_what_was_put_in_last(steps: list[tuple[str, int]]) -> None:
    """The same answers as of chunks in memory, embeddings included, at every step."""
    chunks = split(prose(200), headings=[("A",)] * 5 + [("B",)] * 13)[:12]
    vectors = np.random.default_rng(0).normal(size=(12, 4))
    index, there = HybridIndex(), set()
    for step, at in steps:
        if step == "add":
            index.add(passages_of([chunks[at]]), vectors[[at]])
            there.add(at)
        elif step == "delete":
            index.delete([chunks[at].id])
            there.discard(at)
        else:
            index.compact()
        rows = sorted(there)
        afresh = neighbours_of([chunks[at] for at in rows], vectors[rows])
        (found, cosines), (expected, known) = (
            told(source, chunks) for source in (neighbours(index, GIVEN), afresh)
        )
        assert found == expected
        assert cosines == pytest.approx(known, abs=1e-6)
