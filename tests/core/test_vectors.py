"""Unit length and cosine similarity, for vectors as short or long as float32 holds them."""

from __future__ import annotations

import numpy as np
import pytest

from shared_core.vectors import (
    cosine_similarity,
    l2_normalized,
    model_mismatch,
    query_similarities,
    unit_rows,
)

from .making import random_vectors

SIZES = [1e-40, 1e-23, 1e-18, 1.0, 1e15, 1e37]


@pytest.mark.parametrize("size", SIZES)
def test_lengths_are_not_seen(size: float) -> None:
    """Where squares of components would vanish, lose digits or be infinite, too."""
    vectors = random_vectors(50, 96).astype(np.float64)
    exact = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    digits = 1e-6 if size > 1e-37 else 1e-4  # denormal numbers have fewer themselves
    scaled = (size * vectors).astype(np.float32)
    np.testing.assert_allclose(l2_normalized(scaled), exact, atol=digits)
    second = size * np.array([[3, 4], [4, -3], [-3, -4], [0, 0]])
    found = cosine_similarity([[3, 4]] * 4, second)
    np.testing.assert_allclose(found, [1, 0, -1, 0], atol=digits)
    assert np.abs(found).max() <= 1


def test_a_unit_vector_is_the_same_whatever_its_length_and_company() -> None:
    """Bit for bit, for lengths that differ by powers of two; and by ``x / sqrt(x @ x)``."""
    vectors = random_vectors(1000, 8)
    units, kept = l2_normalized(vectors), vectors.copy()
    np.testing.assert_array_equal(vectors, kept)
    plain = vectors / np.sqrt(np.vecdot(vectors, vectors))[:, None]
    np.testing.assert_array_equal(units, plain)
    for power in (-77, 40, 100):
        scaled = np.ldexp(vectors, power)
        np.testing.assert_array_equal(l2_normalized(scaled[7:8]), units[7:8])
    found = cosine_similarity(units, units, unit=True)  # rounding does not lead beyond 1
    assert found.max() == 1 < np.vecdot(units, units).max()
    assert l2_normalized([[0.0, 0.0]]).tolist() == [[0, 0]]
    assert l2_normalized(np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("size", SIZES[1:-1])
def test_the_gate_and_the_model_check_do_not_see_lengths(size: float) -> None:
    """They compare by the same cosine."""
    vectors = size * np.array([[3, 4], [4, -3]])
    units = unit_rows(vectors, 2, "passages", dim=2)
    np.testing.assert_allclose(units, [[0.6, 0.8], [0.8, -0.6]], rtol=1e-6)
    assert query_similarities([3.0, 4.0], vectors, 2) == pytest.approx([1, 0], abs=1e-6)
    stored = vectors[0].astype(np.float32)
    assert model_mismatch(stored, [3.0, 4.0]) is None
    assert model_mismatch(stored, [4.0, 3.0]) == "now has cosine 0.960 with its stored vector"
