"""``window="auto"``: near neighbours alone, and in competition with the next hits."""

from __future__ import annotations

import pytest

from shared_core.neighbour_spans import Chunk, Expansion, NeighbourSpans
from shared_core.neighbour_spans.sweep import FAR, HALF, WIDEST
from tests.core.neighbour_spans.making import all_ids, ids, neighbours_of, seeds

BYTES = 3.5
"""A token of the estimate."""


def sized(count: int, tokens: int) -> list[Chunk]:
    """Return the chunks of a document, of so many estimated tokens each, one on a line."""
    text = "x" * int(tokens * BYTES)
    return [Chunk(f"d{at}", text, "d", at, at * (len(text) + 1)) for at in range(count)]


def expand(
    chunks: list[Chunk],
    hits: dict[int, float],
    budget: int | None = None,
    tokens: int = 10,
) -> Expansion:
    """Expand by auto; each chunk counts as so many tokens of the budget."""
    spans = NeighbourSpans(
        window="auto",
        token_budget=budget,
        count_tokens=lambda text: tokens * (1 + text.count("\n")),
    )
    return spans.expand(seeds(chunks, hits), neighbours_of(chunks))


@pytest.mark.parametrize(
    ("tokens", "each_side"),
    [(10, WIDEST), (FAR // 4, 4), (FAR // 3 + 1, 2), (HALF, 2), (HALF + 1, 1), (FAR, 1)],
)
def test_the_smaller_the_chunks_the_more_neighbours(tokens: int, each_side: int) -> None:
    """As many as stand near enough, and never more than the widest window takes."""
    (span,) = expand(sized(19, tokens), {9: 0.5}).spans
    assert ids(span) == [f"d{at}" for at in range(9 - each_side, 10 + each_side)]


def test_a_neighbour_of_a_hit_far_ahead_displaces_a_worse_hit() -> None:
    """At half the distance to the lowest score, 0.55 here, its chunks of `HALF` tokens come in."""
    chunks = sized(60, HALF)
    hits = {10: 1.0, 20: 0.6, 30: 0.5, 40: 0.3, 50: 0.1}
    expansion = expand(chunks, hits, budget=40)
    assert all_ids(expansion) == [["d9", "d10", "d11"], ["d20"]]
    assert [seed.chunk.id for seed in expansion.dropped] == ["d30", "d40", "d50"]


def test_among_equal_hits_the_next_hit_comes_before_a_neighbour() -> None:
    """None of them is far ahead of the others; of worth the same the seed is the nearest."""
    hits = {10: 0.5, 20: 0.5, 30: 0.5, 40: 0.5, 50: 0.5}
    expansion = expand(sized(60, HALF), hits, budget=40)
    assert all_ids(expansion) == [["d10"], ["d20"], ["d30"], ["d40"]]


@pytest.mark.parametrize(("shift", "stretch"), [(0.0, 8.0), (-16.0, 1.0), (4.0, 0.5)])
def test_the_scale_of_the_scores_does_not_matter(shift: float, stretch: float) -> None:
    """Cosines, BM25 and fused scores; negative ones too."""
    hits = {10: 1.0, 20: 0.625, 30: 0.5, 40: 0.25, 50: 0.125}
    moved = {at: shift + stretch * score for at, score in hits.items()}
    chunks = sized(60, HALF)
    assert all_ids(expand(chunks, moved, budget=40)) == all_ids(expand(chunks, hits, budget=40))


def test_a_chunk_between_two_hits_is_worth_what_the_better_one_makes_it() -> None:
    """So a hit beside a better one rises above hits elsewhere."""
    hits = {10: 1.0, 11: 0.2, 20: 0.6, 30: 0.1}
    expansion = expand(sized(60, HALF), hits, budget=20)
    assert all_ids(expansion) == [["d10", "d11"]]
    assert [seed.chunk.id for seed in expansion.spans[0].seeds] == ["d10", "d11"]
