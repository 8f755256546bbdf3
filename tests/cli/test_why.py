"""The sentence that says why the best passage is where it is."""

from __future__ import annotations

from shared_core import Arrangement, OrderDecision, Passage, Ranking
from shared_core.cli.demo import why_line


def arrangement(
    slots: tuple[int, ...], *, dense_rank: int, sparse_rank: int, sparse: float
) -> Arrangement:
    ranking = Ranking(
        indices=[0, 1],
        scores=[0.8, 0.5],
        dense=[0.4, 0.6],
        sparse=[sparse, 0.0],
        dense_norm=[0.0, 1.0],
        sparse_norm=[1.0, 0.0],
        dense_rank=[dense_rank, 0],
        sparse_rank=[sparse_rank, 1],
        alpha=0.3,
        fusion="min_max",
        passages=(Passage("best", ""), Passage("next", "")),
    )
    return Arrangement(ranking, OrderDecision(True, "u_shape", slots, None, ""))


def test_lifted_by_its_words() -> None:
    placed = arrangement((0, 1), dense_rank=5, sparse_rank=0, sparse=9.0)
    assert why_line(placed, "next") == (
        "Why: best is at rank 6 by meaning alone; the query's exact words put it at rank 1 of "
        "BM25, and the fused score (0.30 dense + 0.70 BM25) puts it at rank 1, so it opens the "
        "prompt (slot 1). Dense search alone would have ranked next first."
    )


def test_first_either_way_without_a_word_and_placed_last() -> None:
    placed = arrangement((1, 0), dense_rank=0, sparse_rank=0, sparse=0.0)
    assert why_line(placed, "best") == (
        "Why: best is at rank 1 by meaning alone; no word of the query occurs in it, and the fused "
        "score (0.30 dense + 0.70 BM25) puts it at rank 1, so it goes into slot 2 of 2."
    )
