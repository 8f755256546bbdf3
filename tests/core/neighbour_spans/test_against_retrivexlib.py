"""Against the published package, on the same chunks.

Where its documentation and its code agree, ours agrees. Where they do not, or the code does what
nobody can want, a test shows the case, what the package makes of it, and what we do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import retrivex
from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Chunk, NeighbourSpans, Seed, Span
from tests.core.neighbour_spans.making import distinct, ids, neighbours_of, prose, row, split, words

Vectors = list[tuple[float, float]] | np.ndarray | None
Hits = dict[int, float]

PLENTY = 10**9


def theirs(
    chunks: list[Chunk], hits: Hits, vectors: Vectors = None, **options: Any
) -> list[retrivex.Span]:
    """Expand by the published package, with its defaults but for a budget that is no matter."""
    converted = [
        retrivex.Chunk(
            chunk.text,
            retrivex.ChunkMetadata(
                doc_id=chunk.document,
                chunk_id=chunk.number,
                char_start=chunk.start or 0,
                char_end=chunk.end or len(chunk.text),
                heading_path=None if chunk.heading is None else [*chunk.heading],
            ),
            None if vectors is None else [*vectors[at]],
        )
        for at, chunk in enumerate(chunks)
    ]
    store = {(each.metadata.doc_id, each.metadata.chunk_id): each for each in converted}
    found = [retrivex.SeedHit(converted[at], score) for at, score in hits.items()]
    config = retrivex.RetrievalConfig(**{"token_budget": PLENTY, **options})
    return retrivex.SpanComposer(config).retrieve(found, store)  # type: ignore[no-any-return]


def ours(chunks: list[Chunk], hits: Hits, vectors: Vectors = None, **options: Any) -> list[Span]:
    spans = NeighbourSpans(**{"token_budget": None, **options})
    found = [Seed(chunks[at], score) for at, score in hits.items()]
    return spans.expand(found, neighbours_of(chunks, vectors)).placed


def numbers(span: Span) -> list[int | None]:
    return [chunk.number for chunk in span.chunks]


places = st.dictionaries(st.integers(0, 29), st.floats(0, 1), min_size=1, max_size=6)


# ---- where they agree


def test_the_defaults_are_the_same() -> None:
    """Window, budget, weights, decay, threshold and order."""
    config, spans = retrivex.RetrievalConfig(), NeighbourSpans()
    assert (spans.window, spans.token_budget, spans.decay, spans.min_continuity, spans.order) == (
        config.window,
        config.token_budget,
        config.distance_decay_beta,
        config.min_continuity,
        config.ordering_strategy.value,
    )
    assert spans.weights == (
        config.similarity_weight,
        config.adjacency_weight,
        config.continuity_weight,
        config.parent_weight,
    )


@given(places, st.integers(0, 4), st.sets(st.integers(0, 29), max_size=4))
def test_windows_and_spans_are_the_same(hits: Hits, window: int, gone: set[int]) -> None:
    """Without headings, and where no chunk is missing: theirs reaches across a hole."""
    chunks = split(prose(400))[:30]
    assert {tuple(numbers(span)) for span in ours(chunks, hits, window=window)} == {
        tuple(span.chunk_ids) for span in theirs(chunks, hits, window=window)
    }


@given(places)
def test_similarity_and_continuity_are_the_same(hits: Hits) -> None:
    """The best seed's score, and the mean cosine of adjacent chunks; 1 for a chunk alone."""
    chunks = split(prose(400))[:30]
    vectors = np.random.default_rng(0).normal(size=(30, 5))
    expected = {
        tuple(span.chunk_ids): (span.sim_score, span.continuity_score)
        for span in theirs(chunks, hits, vectors, window=1)
    }
    for span in ours(chunks, hits, vectors, window=1):
        similarity, continuity = expected[tuple(map(int, numbers(span)))]  # type: ignore[arg-type]
        assert span.score.similarity == similarity
        assert span.score.continuity == pytest.approx(continuity, abs=1e-6)


def test_a_seed_alone_scores_the_same() -> None:
    """But for the parent, see below: similarity, adjacency 1 and continuity 1, weighted."""
    chunks, vectors = split(prose(100)), np.ones((10, 2))[:9]
    weights = (1.0, 0.6, 0.2, 0.0)
    (span,) = ours(chunks, {3: 0.5}, vectors, window=0, weights=weights)
    (expected,) = theirs(chunks, {3: 0.5}, vectors, window=0, parent_weight=0.0)
    assert span.score.total == pytest.approx(expected.score) == 1.3


def test_a_seed_counts_by_its_distance_the_same() -> None:
    """Golden: 1.00, 0.50, 0.25, 0.12; on seeds alone, where no length comes in."""
    chunks = split(prose(100))
    for distance, more in ((1, 0.50), (2, 0.25), (3, 0.12)):
        hits = dict.fromkeys(range(3, 4 + distance), 0.5)
        (span,) = ours(chunks, hits, window=0)
        (expected,) = theirs(chunks, hits, window=0)
        assert span.score.adjacency == pytest.approx(expected.adjacency_score / len(hits))
        assert round(math.exp(-0.7 * distance), 2) == more


@pytest.mark.parametrize("order", ["edge_balanced", "front_first", "back_first"])
@pytest.mark.parametrize("count", [1, 3, 4, 5, 6])
def test_orders_are_the_same(order: str, count: int) -> None:
    """By scores that all agree on: those of chunks alone."""
    chunks = split(prose(1000))
    hits = {at * 5 + 5: 0.9 - at / 20 for at in range(count)}
    strategy = retrivex.OrderingStrategy(order)
    expected = [
        span.chunk_ids for span in theirs(chunks, hits, window=0, ordering_strategy=strategy)
    ]
    assert [numbers(span) for span in ours(chunks, hits, window=0, order=order)] == expected


def test_headings_stop_and_continuity_opens_them_the_same() -> None:
    """At the first chunk beyond, where both look at the same pair."""
    chunks = split(prose(100), headings=[("A",)] * 4 + [("B",)] * 5)
    for beyond in ((1.0, 0.1), (0.1, 1.0)):
        vectors = [(1.0, 0.0)] * 4 + [beyond] * 5
        (span,) = ours(chunks, {3: 0.5}, vectors, window=1)
        (expected,) = theirs(chunks, {3: 0.5}, vectors, window=1)
        assert numbers(span) == expected.chunk_ids


# ---- where they differ


def test_the_parent_bonus_is_real() -> None:
    """Documented as a part of the score; there it is 0 whatever the span holds."""
    chunks = split(prose(100), headings=[("A",)] * 4 + [("B",)] * 5)
    (expected,) = theirs(chunks, {5: 0.5})
    (span,) = ours(chunks, {5: 0.5})
    assert (expected.parent_bonus, span.score.parent) == (0.0, 1.0)


def test_a_span_does_not_win_by_its_length() -> None:
    """A clearly better hit in a short document loses there to a long span; and less so alone."""
    short, long = row("the answer", document="s"), row(*["filler"] * 9, document="l")
    hits = {0: 0.9, 5: 0.5}
    assert theirs([*short, *long], hits)[0].doc_id == "l"
    assert ours([*short, *long], hits)[0].document == "s"
    assert theirs([*short, *long], hits, window=0)[0].doc_id == "s"


def test_a_window_that_grows_leaves_the_ranks_as_they_are() -> None:
    """There each step adds to the score of whoever has room for it."""
    chunks = split(prose(100))
    for window in (0, 1, 2, 3):
        (span,) = ours(chunks, {4: 0.5}, window=window)
        (expected,) = theirs(chunks, {4: 0.5}, window=window)
        assert span.score.adjacency == 1
        assert expected.adjacency_score == pytest.approx(
            1 + 2 * sum(math.exp(-0.7 * step) for step in range(1, window + 1))
        )


def test_tokens_are_counted() -> None:
    """There they are characters over four: a text of short words costs twice what it says."""
    chunks = row(*["a b c d e f g h " * 10] * 5)
    (expected,) = theirs(chunks, {2: 0.5})
    (span,) = ours(chunks, {2: 0.5}, count_tokens=words)
    assert expected.token_count == 200
    assert len(expected.text.split()) == 400
    assert span.tokens == len(span.text.split())


def test_the_budget_holds_for_the_first_span_too() -> None:
    """There the best span comes whole, however long: "trimmed if needed" is not written."""
    chunks = distinct(9, 40)
    (expected,) = theirs(chunks, {4: 0.5}, token_budget=60)
    (span,) = ours(chunks, {4: 0.5}, token_budget=60, count_tokens=words)
    assert len(expected.text.split()) == 200
    assert span.tokens == 40


def test_a_span_that_does_not_fit_is_trimmed_and_no_hit_is_lost() -> None:
    """There it is dropped, seed and all."""
    chunks = distinct(30, 40)
    hits = {5: 0.9, 15: 0.8, 25: 0.7}
    assert len(theirs(chunks, hits, token_budget=300)) == 1
    placed = ours(chunks, hits, token_budget=300, count_tokens=words)
    assert sorted(seed.chunk.id for span in placed for seed in span.seeds) == ["d15", "d25", "d5"]
    assert sum(span.tokens for span in placed) == 280


def test_negative_cosines_are_scores() -> None:
    """A cosine of embeddings may be below 0, and BM25's scores above 1; there both are refused."""
    chunks = split(prose(100))
    for score in (-0.2, 12.5):
        with pytest.raises(ValueError, match="similarity_score"):
            theirs(chunks, {4: score})
        assert ours(chunks, {4: score})[0].score.similarity == score


def test_text_that_overlaps_is_not_repeated() -> None:
    """There chunks are joined by a space, and what they share stands there twice."""
    text = prose(60)
    chunks = split(text, overlap=30)
    (expected,) = theirs(chunks, {2: 0.5})
    (span,) = ours(chunks, {2: 0.5})
    assert expected.chunk_ids == numbers(span)
    assert expected.text not in text
    assert span.text in text


def test_what_is_blocked_is_not_skipped() -> None:
    """There each neighbour is compared with the seed alone, so a span has a hole and a rest."""
    headings = [("A",), ("A",), ("B",), ("A",), ("A",)]
    chunks, vectors = split(prose(50), headings=headings), np.eye(5)
    assert [span.chunk_ids for span in theirs(chunks, {1: 0.5}, vectors)] in (
        [[0, 1], [3]],
        [[3], [0, 1]],
    )
    assert [numbers(span) for span in ours(chunks, {1: 0.5}, vectors)] == [[0, 1]]


def test_without_embeddings_headings_do_stop() -> None:
    """There an unknown continuity is 0.5, which the default threshold of 0.5 lets through."""
    chunks = split(prose(50), headings=[("A",), ("A",), ("B",), ("B",), ("B",)])
    assert theirs(chunks, {1: 0.5})[0].chunk_ids == [0, 1, 2, 3]
    assert [numbers(span) for span in ours(chunks, {1: 0.5})] == [[0, 1]]


def test_a_hole_in_the_numbers_is_not_reached_across() -> None:
    """There the chunk behind it becomes a span of its own that holds no hit."""
    chunks = [chunk for chunk in split(prose(100)) if chunk.number != 5]
    assert sorted(span.chunk_ids for span in theirs(chunks, {4: 0.5})) == [[2, 3, 4], [6]]
    assert [ids(span) for span in ours(chunks, {4: 0.5})] == [["d2", "d3", "d4"]]


def test_empty_texts_are_chunks() -> None:
    """An index may hold one; there it cannot be made."""
    chunks = row("one", "", "two")
    with pytest.raises(ValueError, match="empty"):
        theirs(chunks, {0: 0.5})
    assert ours(chunks, {0: 0.5})[0].text == "one\ntwo"
