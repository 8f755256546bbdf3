"""The token budget: what is kept, and what goes first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shared_core.neighbour_spans import Chunk, Expansion, NeighbourSpans
from shared_core.tokens import estimate_tokens
from tests.core.neighbour_spans.making import (
    all_ids,
    distinct,
    neighbours_of,
    row,
    seeds,
    words,
)


def fit(
    budget: int | None,
    hits: dict[int, float],
    chunks: list[Chunk] | None = None,
    *,
    count_tokens: Callable[[str], int] = words,
    window: int = 2,
) -> Expansion:
    chunks = chunks or distinct(30, 10)
    spans = NeighbourSpans(window=window, token_budget=budget, count_tokens=count_tokens)
    return spans.expand(seeds(chunks, hits), neighbours_of(chunks))


@pytest.mark.parametrize(
    ("budget", "best", "second"),
    [
        (30, "56", "15"),
        (40, "456", "15"),
        (70, "34567", "15 16"),
        (100, "34567", "13 14 15 16 17"),
    ],
)
def test_seeds_come_first_then_the_best_span_grows_from_its_seed(
    budget: int, best: str, second: str
) -> None:
    """The nearest neighbours first; of two as near, the one that the text goes on to."""
    expansion = fit(budget, {5: 0.9, 15: 0.1})
    assert all_ids(expansion) == [
        [f"d{number}" for number in best],
        [f"d{number}" for number in second.split()],
    ]
    assert expansion.tokens == budget // 10 * 10


def test_a_span_falls_into_parts_where_the_budget_has_no_room_between_its_seeds() -> None:
    """The neighbours of the better one come first."""
    expansion = fit(40, {5: 0.9, 9: 0.8})
    assert all_ids(expansion) == [["d4", "d5", "d6"], ["d9"]]
    assert [chunk.id for chunk in expansion.spans[0].trimmed] == ["d3", "d7", "d8"]
    assert [chunk.id for chunk in expansion.spans[1].trimmed] == ["d7", "d8", "d10", "d11"]


def test_a_seed_too_large_makes_room_for_the_next() -> None:
    """Its place is not left empty; what goes is told, best first."""
    chunks = distinct(30, 10)
    chunks[10:11] = row(*["word " * 40] * 11)[10:]
    expansion = fit(25, {20: 0.1, 5: 0.5, 25: 0.2, 10: 0.4, 15: 0.3}, chunks, window=0)
    assert all_ids(expansion) == [["d5"], ["d15"]]
    assert [seed.chunk.id for seed in expansion.dropped] == ["d10", "d25", "d20"]
    chunks[10:11] = row(*["word " * 60] * 11)[10:]
    wide = fit(60, {5: 0.5, 10: 0.4, 15: 0.3}, chunks, window=1)
    assert all_ids(wide) == [["d4", "d5", "d6"], ["d14", "d15", "d16"]], "nor those next to it"


def test_a_budget_smaller_than_the_best_chunk_is_an_error_with_both_numbers() -> None:
    """Without its best passage a context looks like any other."""
    match = r"token_budget=9 is smaller than the best chunk, 'd5', which has 10 tokens"
    with pytest.raises(ValueError, match=match):
        fit(9, {15: 0.5, 5: 0.9})


def test_seeds_next_to_each_other_are_paid_for_as_one_text() -> None:
    """Else a seed would be lost though the budget holds it."""
    text = " ".join(f"word{number:04}" for number in range(30))
    chunks = [Chunk(f"d{n}", text[n * 72 : n * 72 + 107], "d", n, n * 72) for n in range(3)]
    assert all_ids(fit(28, {0: 0.1, 2: 0.2, 1: 0.9}, chunks)) == [["d0", "d1", "d2"]]
    expansion = fit(27, {0: 0.1, 2: 0.2, 1: 0.9}, chunks, window=0)
    assert all_ids(expansion) == [["d1", "d2"]]
    assert [seed.score for seed in expansion.dropped] == [0.1]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("a" * 7, 2), ("a" * 8, 3), ("汉字汉字汉字汉字", 7)]
)
def test_the_estimate_is_by_bytes(text: str, tokens: int) -> None:
    """So that a script of three bytes a character is not taken for a quarter of its tokens."""
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(("given", "budget"), [(["a", "b"], 100), (2.5, None), (-1, 100)])
def test_what_a_tokenizer_returns_has_to_be_a_number_of_tokens(
    given: object, budget: int | None
) -> None:
    """A tokenizer's own ``encode`` gives ids; and NaN would fit into every budget."""
    with pytest.raises(ValueError, match=r"count_tokens must return .*integer, got .*len\("):
        fit(budget, {5: 1.0}, count_tokens=lambda _: given)  # type: ignore[arg-type,return-value]
