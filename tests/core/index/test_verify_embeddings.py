"""Telling whether an embedding model is the one an index was built with."""

from __future__ import annotations

from typing import Any

import pytest

from shared_core import EmbeddingMismatchError, HybridIndex, Passage

VECTORS = {"longer text": [1.0, 0.0, 0.0], "short": [0.6, 0.8, 0.0], "": [0.0, 0.0, 1.0]}


def index_of(vectors: dict[str, list[float]], metric: Any = "cosine") -> HybridIndex:
    index = HybridIndex(metric=metric)
    index.add([Passage(f"p{n}", text) for n, text in enumerate(vectors)], [*vectors.values()])
    return index


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_the_same_model_passes(metric: str) -> None:
    """One text is embedded, a short one that is not empty; tiny differences are rounding."""
    asked = []

    def embed(text: str) -> list[float]:
        asked.append(text)
        return [value + 1e-4 for value in VECTORS[text]]

    index_of(VECTORS, metric).verify_embeddings(embed)
    assert asked == ["short"]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([0.8, 0.6, 0.0], r"passage 'p1' now has cosine 0\.960"),
        ([0.6, 0.8], "dimension 3, the embedding model gives dimension 2"),
        ([float("nan")] * 3, "not the one the index was built with"),
    ],
)
def test_another_model_is_refused(vector: Any, message: str) -> None:
    """Another direction, dimension or shape; a model that gives zeros or NaN is none at all."""
    with pytest.raises(EmbeddingMismatchError, match=message):
        index_of(VECTORS).verify_embeddings(lambda _: vector)


def test_what_proves_nothing_is_not_asked_for() -> None:
    """Nothing to compare in an empty index; any model would do for a vector of zeros."""
    index = index_of(VECTORS)
    index.delete(index.ids)
    for empty in (HybridIndex(), index, index_of({"x": [0.0, 0.0]})):
        empty.verify_embeddings(lambda _: pytest.fail("asked"))
    with pytest.raises(EmbeddingMismatchError):
        index_of({"x": [0.0, 0.0], "long": [0.0, 1.0]}).verify_embeddings(lambda _: [1.0, 0.0])
