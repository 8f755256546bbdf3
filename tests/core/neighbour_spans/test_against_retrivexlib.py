"""Against the published package, on the same chunks, where its documentation and code agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import retrivex
from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Chunk, NeighbourSpans, Seed, Span
from tests.core.neighbour_spans.making import neighbours_of, prose, split

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
    return [*spans.expand(found, neighbours_of(chunks, vectors)).spans]


def numbers(span: Span) -> list[int | None]:
    return [chunk.number for chunk in span.chunks]


places = st.dictionaries(st.integers(0, 29), st.floats(0, 1), min_size=1, max_size=6)


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
