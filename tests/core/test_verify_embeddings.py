"""Telling whether an embedding model is the one an index was built with."""

from __future__ import annotations

import pytest

from shared_core import EmbeddingMismatchError, HybridIndex, Passage

VECTORS = {"longer text": [1.0, 0.0, 0.0], "short": [0.6, 0.8, 0.0], "": [0.0, 0.0, 1.0]}


def index_of(vectors: dict[str, list[float]], metric: str = "cosine") -> HybridIndex:
    index = HybridIndex(metric=metric)  # type: ignore[arg-type]
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


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
@pytest.mark.parametrize("size", [1e-23, 1e15])
def test_the_length_of_vectors_does_not_matter(metric: str, size: float) -> None:
    """An index of inner products keeps them as short or long as they were given."""
    index = index_of({"short": [3 * size, 4 * size]}, metric)
    index.verify_embeddings(lambda _: [3.0, 4.0])
    with pytest.raises(EmbeddingMismatchError, match=r"cosine 0\.960"):
        index.verify_embeddings(lambda _: [4.0, 3.0])


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([0.8, 0.6, 0.0], r"passage 'p1' now has cosine 0\.960"),
        ([-0.6, -0.8, 0.0], "cosine -1"),
        ([0.6, 0.8], "dimension 3, the embedding model gives dimension 2"),
        ([0.0, 0.0, 0.0], "not the one the index was built with"),
        ([float("nan")] * 3, "not the one the index was built with"),
        ([VECTORS["short"]], "dimension 3, the embedding model gives dimension 1 x 3"),
    ],
)
def test_another_model_is_refused(vector: list[float], message: str) -> None:
    """Another direction, dimension or shape; a model that gives zeros or NaN is none at all."""
    with pytest.raises(EmbeddingMismatchError, match=message):
        index_of(VECTORS).verify_embeddings(lambda _: vector)


def test_an_empty_index_fits_every_model() -> None:
    """There is nothing to compare, so the model is not even asked."""

    def embed(text: str) -> list[float]:
        raise AssertionError(text)

    HybridIndex().verify_embeddings(embed)
    index = index_of(VECTORS)
    index.delete(index.ids)
    index.verify_embeddings(embed)


def test_a_passage_whose_vector_is_zero_proves_nothing() -> None:
    """Any model would do for it, so another passage is asked."""
    index = index_of({"x": [0.0, 0.0], "long enough": [0.0, 1.0]})
    with pytest.raises(EmbeddingMismatchError):
        index.verify_embeddings(lambda _: [1.0, 0.0])


def test_what_the_model_raises_comes_through() -> None:
    """A model that cannot be reached is not another model."""

    def embed(_: str) -> list[float]:
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        index_of(VECTORS).verify_embeddings(embed)
