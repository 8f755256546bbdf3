"""Vectors of any length: checked, scaled to unit length, and compared by their cosine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors

SAME_MODEL = 0.99
"""Cosine from which two embeddings of one text count as made by the same model."""


def l2_normalized(vectors: npt.ArrayLike) -> Vectors:
    """Return a copy of vectors with each row at unit length; a row of zeros stays.

    ``x / sqrt(x @ x)`` in float32, of each row by itself, so that a vector is the same in whatever
    company. Of vectors that differ by a power of two the results are the same bit for bit.

    Parameters
    ----------
    vectors
        Finite, shape (n, dim).
    """
    rows = np.asarray(vectors, np.float32)
    largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))[:, None]
    # Squares of components of 1e-23 vanish in float32, those of 1e20 are infinite. A power of two
    # that puts the largest component near 1 costs no digit.
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
    """Return vectors as unit rows, shape (count, dim), as `l2_normalized` does.

    Parameters
    ----------
    vectors
        Shape (count, dim); for no rows, anything empty.
    count
        How many there must be.
    what
        Whose they are, for the error.
    dim
        The dimension they must have; None: any.
    names
        What each row belongs to, for the error; by default its number.

    Raises
    ------
    ValueError
        If the shape is another, or a value is not finite.
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
        Whether the rows are known to be of unit length, or zero, and are taken as they are.

    Returns
    -------
    Vectors
        Shape (n,); 0 where either row is zero.
    """
    if not unit:
        first, second = l2_normalized(first), l2_normalized(second)
    # Rounding may put the cosine of a vector with itself above 1.
    return np.asarray(np.vecdot(first, second).clip(-1, 1))


def other_model(stored: Vectors, again: npt.ArrayLike) -> str | None:
    """Return what shows that a text was embedded by another model; None if nothing does.

    Parameters
    ----------
    stored
        The text's vector as it was kept, shape (dim,), of any length but zero.
    again
        What the model at hand makes of the text.

    Returns
    -------
    str | None
        To be said of the text: "... now has cosine 0.412 with its stored vector".
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
