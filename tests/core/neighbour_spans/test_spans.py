"""The sweep and what becomes of it: where sides stop, what merges, what a span tells."""

from __future__ import annotations

import json
import re

import pytest

from shared_core.neighbour_spans import Chunk, ChunkSource, Expansion, NeighbourSpans, Seed
from tests.core.neighbour_spans.making import ids, neighbours_of, prose, seeds, split

A, B = ("A",), ("B",)
SAME, CLOSE, FAR = (1.0, 0.0), (0.8, 0.6), (-1.0, 0.0)


def expand(
    chunks: list[Chunk],
    hits: dict[int, float],
    source: ChunkSource | None = None,
    **options: object,
) -> Expansion:
    spans = NeighbourSpans(**{"token_budget": None, **options})  # type: ignore[arg-type]
    return spans.expand(seeds(chunks, hits), source or neighbours_of(chunks))


def test_a_heading_stops_a_side_where_continuity_is_unknown() -> None:
    """Headings alone decide, and the span says that continuity is unknown and counts nothing."""
    chunks = split(prose(80), headings=[A, A, A, B, B, B, B, B])
    (span,) = expand(chunks, {3: 0.9}).spans
    assert ids(span) == ["d3", "d4", "d5"]
    assert span.score.continuity == 0
    assert span.score.continuity_from.startswith("unknown")


@pytest.mark.parametrize(("beyond", "last"), [(CLOSE, "d4"), (FAR, "d2")])
def test_continuity_opens_a_heading(beyond: tuple[float, float], last: str) -> None:
    """Where the first chunk under the next heading continues the last one, the sweep goes on."""
    chunks = split(prose(80), headings=[A, A, A, B, B, B, B, B])
    source = neighbours_of(chunks, [SAME] * 3 + [beyond] * 5)
    (span,) = expand(chunks, {2: 0.9}, source).spans
    assert ids(span)[-1] == last


def test_a_blocked_chunk_blocks_what_lies_behind_it() -> None:
    """Though it stands under the seed's own heading again."""
    chunks = split(prose(60), headings=[A, A, B, A, A, A])
    assert ids(expand(chunks, {1: 0.9}).spans[0]) == ["d0", "d1"]


def test_an_unknown_heading_is_no_change_of_heading() -> None:
    """Nothing is known to have changed; before the first heading is known, and written ()."""
    chunks = split(prose(60), headings=[A, None, B, (), (), ()])
    assert ids(expand(chunks, {1: 0.9}, window=1).spans[0]) == ["d0", "d1", "d2"]
    assert ids(expand(chunks, {3: 0.9}, window=1).spans[0]) == ["d3", "d4"]


def test_a_chunk_that_was_found_twice_is_one_seed_with_its_better_score() -> None:
    """As retrievers that ask several queries give it."""
    chunks = split(prose(100))
    found = [Seed(chunks[3], 0.2), Seed(chunks[3], 0.7)]
    (span,) = NeighbourSpans().expand(found, neighbours_of(chunks)).spans
    assert [seed.score for seed in span.seeds] == [0.7]


def test_orders_place_whole_spans() -> None:
    """The spans themselves stay best first, for a caller with a placement of its own."""
    chunks = split(prose(600))
    hits = {5: 0.5, 15: 0.9, 25: 0.7, 35: 0.8, 45: 0.6}
    for order, slots in (("edge_balanced", (0, 2, 4, 3, 1)), ("score_descending", (0, 1, 2, 3, 4))):
        expansion = expand(chunks, hits, order=order)
        assert [span.score.similarity for span in expansion.spans] == [0.9, 0.8, 0.7, 0.6, 0.5]
        assert expansion.slots == slots


def test_equal_scores_keep_the_order_of_the_seeds() -> None:
    """Ties are the retriever's to break."""
    chunks = split(prose(600))
    merged = expand(chunks, {5: 0.5, 45: 0.5, 2: 0.5}, weights=(1, 0, 0, 0))
    assert [span.seeds[0].chunk.id for span in merged.spans] == ["d5", "d45"]


def test_a_span_tells_how_it_came_about() -> None:
    """All of it, as JSON that comes back as it went."""
    chunks = split(prose(100), headings=[A] * 3 + [B] * 6)
    expansion = expand(
        chunks, {2: 0.5, 6: 0.25}, neighbours_of(chunks, [SAME] * 9), min_continuity=0
    )
    (told,) = [span.explain() for span in expansion.spans]
    assert json.loads(json.dumps(told)) == told
    assert told["chunks"] == [f"d{number}" for number in range(9)]
    assert told["seeds"] == {"d2": 0.5, "d6": 0.25}
    assert (told["similarity"], told["continuity"], told["parent"]) == (0.5, 1.0, 1.0)
    assert told["trimmed"] == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("window", -1),
        ("token_budget", 0),
        ("weights", (1, 1, 1, -1)),
        ("decay", float("inf")),
        ("order", "max_relevance"),
    ],
)
def test_options_out_of_range_are_refused_by_name(option: str, value: object) -> None:
    """When they are given, not at the first query."""
    match = f"^{option}.* got {re.escape(repr(value))}$|where there is no psi=, use another"
    with pytest.raises(ValueError, match=match):
        NeighbourSpans(**{option: value})  # type: ignore[arg-type]
