"""The score of a span: four parts, none of which rewards length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Chunk, NeighbourSpans, PassageNeighbours
from shared_core.neighbour_spans.score import SpanScore, adjacency
from tests.core.neighbour_spans.making import GIVEN, neighbours_of, passages_of, prose, seeds, split

A, B = ("A",), ("B",)


def score(
    places: dict[int, float],
    *,
    length: int = 20,
    headings: tuple[tuple[str, ...] | None, ...] = (),
    vectors: object = None,
    **options: object,
) -> SpanScore:
    """Score of the only span around seeds at these places of one document."""
    chunks = split(prose(length * 12)[: length * 100], headings=headings)
    source = neighbours_of(chunks, vectors)  # type: ignore[arg-type]
    spans = NeighbourSpans(**{"token_budget": None, **options})  # type: ignore[arg-type]
    (span,) = spans.expand(seeds(chunks, places), source).spans
    return span.score


@given(st.sets(st.integers(0, 60), min_size=1, max_size=12), st.floats(0.01, 5))
def test_adjacency_is_the_pair_sum_over_the_number_of_seeds(places: set[int], decay: float) -> None:
    """Its definition, written out; and the bound that keeps many seeds from outweighing all."""
    pairs = sum(math.exp(-decay * abs(one - other)) for one in places for other in places)
    near = adjacency(sorted(places), decay)
    assert near == pytest.approx(pairs / len(places), rel=1e-9)
    assert 1 <= near <= 1 / math.tanh(decay / 2)


def test_where_no_embedding_is_known_no_span_gains_by_continuity() -> None:
    """A lone chunk neither, beside longer spans."""
    chunks = split(prose(100), headings=[A, *[B] * 8])
    expansion = NeighbourSpans().expand(seeds(chunks, {0: 0.5, 6: 0.4}), neighbours_of(chunks))
    assert [len(span.chunks) for span in expansion.spans] == [1, 5]
    assert [span.score.continuity for span in expansion.spans] == [0, 0]


def test_continuity_rests_on_the_pairs_that_are_known() -> None:
    """A chunk without an embedding is left out of the mean, and the span says so."""

    class Partly(PassageNeighbours):
        def continuity(self, pairs: Sequence[tuple[Chunk, Chunk]]) -> list[float | None]:
            return [1.0 if pair == (chunks[0], chunks[1]) else None for pair in pairs]

    chunks = split(prose(60))[:5]
    source = Partly(passages_of(chunks), GIVEN)
    (span,) = NeighbourSpans().expand(seeds(chunks, {2: 0.5}), source).spans
    assert span.score.continuity == 1
    assert span.score.continuity_from == "1 of 4 pairs of adjacent chunks"


def test_the_parent_is_there_with_the_first_chunk_of_its_section() -> None:
    """That is where its heading stands, or its summary."""
    headings = (*[A] * 8, *[B] * 12)
    assert score({10: 0.5}, headings=headings).parent == 1
    assert score({8: 0.5}, headings=headings, window=0).parent == 1
    assert score({2: 0.5}, headings=headings).parent == 1
    assert score({10: 0.5}, headings=headings, window=1).parent == 0
    assert score({1: 0.5}, length=3).parent == 0, "no headings are known"
    own = {"headings": headings, "min_continuity": None, "window": 1}
    assert score({9: 0.9, 6: 0.1}, **own).parent == 1, "the best seed's"  # type: ignore[arg-type]
    assert score({9: 0.1, 6: 0.9}, **own).parent == 0  # type: ignore[arg-type]


def test_the_total_is_the_weighted_sum() -> None:
    """With the weights of the source by default."""
    found = score({10: 0.5}, headings=(*[A] * 8, *[B] * 12), vectors=[(1.0, 0.0)] * 20)
    assert found.total == pytest.approx(0.5 + 0.6 * 1 + 0.2 * 1 + 0.1 * 1)
    assert score({10: 0.5}, weights=(2, 0, 0, 0)).total == 1
