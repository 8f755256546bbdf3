"""Vectors of any length: checked, scaled to unit length, and compared by their cosine."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors

SAME_MODEL = 0.99
"""Cosine from which two embeddings of one text count as made by the same model. It is below 1
because a model's results differ a little between machines and batches."""

NOT_REAL = "cmMSTU"
"""Kinds of NumPy types that it would convert to floats, though they are no real numbers."""


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


@np.errstate(over="ignore")  # huge values are found, and named
def checked_rows(
    vectors: npt.ArrayLike, names: Sequence[str], what: str, dim: int | None = None
) -> Vectors:
    """Return a copy of vectors as float32, shape (len(names), dim).

    They are read one by one, so that other threads, such as an event loop, run in between.

    Parameters
    ----------
    vectors
        Shape (len(names), dim).
    names
        What each row belongs to, for the error.
    what
        What all of them belong to, for the error.
    dim
        The expected dimension; None: that of the first.

    Raises
    ------
    ValueError
        If the shape differs, or a value is NaN, infinite, so large that its square is, or no real
        number.
    """
    given = vectors if isinstance(vectors, list | tuple) else as_floats(vectors, what)
    if len(given) != len(names):
        raise ValueError(f"{what}: expected {len(names)} vectors, got {len(given)}")
    if dim is None:
        dim = as_floats(given[0], names[0]).size if names else 0
    matrix = np.empty((len(names), dim), np.float32)
    for at, (vector, name) in enumerate(zip(given, names, strict=True)):
        row = as_floats(vector, name)
        if row.shape != (dim,) or not dim:
            raise ValueError(
                f"{name}: expected a vector of dimension {dim}, got dimension "
                f"{' x '.join(map(str, row.shape))}: all must come from one embedding model"
            )
        matrix[at] = row
    for at in np.flatnonzero(~np.isfinite(np.vecdot(matrix, matrix))).tolist():
        raise ValueError(f"the embedding of {names[at]} holds NaN, infinite or huge values")
    return matrix


def as_floats(values: npt.ArrayLike, owner: str) -> Vectors:
    """Return a contiguous float32 array, in which too large values are infinite.

    Raises
    ------
    ValueError
        If they are no real numbers, or a single one; the message names their owner.
    """
    try:
        if isinstance(values, list) and values and isinstance(values[0], float):
            return np.frombuffer(array("f", values), np.float32)  # as most models give them
        given: npt.NDArray[Any] = np.asarray(values)
        if given.dtype.kind in NOT_REAL or given.ndim == 0:
            raise TypeError(f"got values of type {given.dtype}")
        with np.errstate(over="ignore"):
            return given.astype(np.float32, order="C", copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"the embedding of {owner} is not numbers: {error}") from error


def unit_rows(
    vectors: npt.ArrayLike,
    count: int,
    what: str,
    *,
    dim: int | None = None,
    names: Sequence[str] = (),
) -> Vectors:
    """Return `checked_rows` at unit length; without `names`, rows are named by their numbers."""
    names = names or [f"{what}, vector {at}" for at in range(count)]
    return l2_normalized(checked_rows(vectors, names, what, dim))


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
