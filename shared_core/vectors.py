"""Vectors scaled to unit length, and cosine similarity, right for vectors of any length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors


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
