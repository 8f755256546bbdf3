"""Vectors of any length: checked, scaled to unit length, and compared by their cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors

SAME_MODEL = 0.99
"""Cosine from which two embeddings of one text count as made by the same model. It is below 1
because a model's results differ a little between machines and batches."""


def l2_normalized(vectors: npt.ArrayLike) -> Vectors:
    """Return a copy of vectors with each row at unit length; a row of zeros stays.

    Each row is ``x / sqrt(x @ x)`` in float32, computed alone, so that the other rows do not affect
    it. Vectors that differ by a power of two give the same result bit for bit.

    Parameters
    ----------
    vectors
        Finite, shape (n, dim).
    """
    rows = np.asarray(vectors, np.float32)
    largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))[:, None]
    # In float32 the square of 1e-23 is 0 and that of 1e20 infinite. Scaling by a power of two, so
    # that the largest component is near 1, loses no digits.
    rows = np.ldexp(rows, -np.frexp(largest)[1])
    lengths = np.sqrt(np.vecdot(rows, rows))[:, None]
    return np.asarray(np.divide(rows, lengths, out=rows, where=lengths > 0))


def unit_rows(
    vectors: npt.ArrayLike,
    count: int,
    what: str,
    *,
    dim: int | None = None,
    names: Sequence[str] = (),
) -> Vectors:
    """Check vectors and return them with `l2_normalized` rows, shape (count, dim).

    Parameters
    ----------
    vectors
        Shape (count, dim); for no rows, anything empty.
    count
        The expected number of vectors.
    what
        What they belong to, for the error.
    dim
        The expected dimension; None: any.
    names
        What each row belongs to, for the error; by default its number.

    Raises
    ------
    ValueError
        If the shape differs, or a value is not finite.
    """
    rows = np.asarray(vectors, np.float32)
    if rows.size == 0 and count == 0:
        return np.empty((0, dim or 0), np.float32)
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError(f"{what}: expected {count} vectors, got an array of shape {rows.shape}")
    if dim is not None and rows.shape[1] != dim:
        raise ValueError(
            f"{what}: expected vectors of dimension {dim}, got dimension {rows.shape[1]}: all must "
            "come from one embedding model"
        )
    for row in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
        of = f" of {names[row]}" if names else f" {row}"
        raise ValueError(f"{what}: vector{of} holds a value that is not finite")
    return l2_normalized(rows)


def cosine_similarity(
    first: npt.ArrayLike, second: npt.ArrayLike, *, unit: bool = False
) -> Vectors:
    """Return the cosine of each row of one matrix with the same row of another, in [-1, 1].

    Parameters
    ----------
    first, second
        Finite, shape (n, dim).
    unit
        Whether the rows are known to be zero or of unit length, and need no scaling.

    Returns
    -------
    Vectors
        Shape (n,); 0 where either row is zero.
    """
    if not unit:
        first, second = l2_normalized(first), l2_normalized(second)
    # Rounding may put the cosine of a vector with itself above 1.
    return np.asarray(np.vecdot(first, second).clip(-1, 1))


def query_similarities(query: npt.ArrayLike, vectors: npt.ArrayLike, count: int) -> list[float]:
    """Return the cosine of a query to each of `count` passages; 0 for a zero vector.

    Raises
    ------
    ValueError
        If a vector is not finite, or a shape is wrong.
    """
    (unit,) = unit_rows(np.asarray(query)[None], 1, "the query")
    passages = unit_rows(vectors, count, "the passages found", dim=unit.size)
    # One dot product per row, so that equal passages have equal cosines.
    similarities: list[float] = np.vecdot(passages, unit).tolist()
    return similarities


def model_mismatch(stored: Vectors, again: npt.ArrayLike) -> str | None:
    """Return how a text's embedding differs from the stored one, or None if it does not.

    Parameters
    ----------
    stored
        The stored vector of the text, shape (dim,), not zero.
    again
        The vector that the given model computes for the text.

    Returns
    -------
    str | None
        Continues a sentence about the text: "... now has cosine 0.412 with its stored vector".
    """
    vector = np.asarray(again, np.float64)
    if vector.shape != stored.shape:
        dimension = " x ".join(map(str, vector.shape))
        return (
            f"has a stored vector of dimension {stored.size}, the embedding model gives "
            f"dimension {dimension}"
        )
    (cosine,) = cosine_similarity([stored], [vector]).tolist()
    return None if cosine >= SAME_MODEL else f"now has cosine {cosine:.3f} with its stored vector"
