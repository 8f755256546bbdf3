"""The inner loops of building an index and of a search in C, where they were built.

Elsewhere numpy does their work: each caller checks `built` first, and has a numpy version next to
it. Both agree bit for bit on BM25 scores; products of float vectors differ in the last
bits, since numpy leaves the order of summation to the machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Ints, Rows, Scores, Vectors

INTERFACE = 14
"""Goes up when a signature or a result changes: a module of an older build is not used."""

try:
    from shared_core.native import _kernels
except ImportError:
    built = False
else:
    built = getattr(_kernels, "INTERFACE", None) == INTERFACE

Narrow: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.int32]

Postings: TypeAlias = tuple[Ints, npt.NDArray[np.int64], Ints, Narrow, Narrow, Ints]
"""A `shared_core.index.sparse.postings.Segment`."""

Words: TypeAlias = tuple[list[int], list[float]]
"""Terms of a query and their weights, each of shape (t,)."""

Norm: TypeAlias = tuple[float, float]
"""Slope and base of a length normalisation; see `shared_core.index.sparse.bm25.BM25Options`."""


class Scan(NamedTuple):
    """Vectors to search, and 8-bit copies that are scanned first.

    Attributes
    ----------
    vectors
        Shape (rows, dim).
    codes
        The first vectors times `scale`, rounded, plus 128; shape (copied, dim), dim up to
        65,536. None: all rows are multiplied.
    scale, margin
        As in `ByteCopies`.
    longest
        Largest norm of a vector.
    rounding
        How much products of unit vectors may differ by the order of summation.
    """

    vectors: Vectors
    codes: npt.NDArray[np.uint8] | None = None
    scale: float = 1.0
    margin: float = 0.0
    longest: float = 1.0
    rounding: float = 0.0


def pools(
    scan: Scan | None,
    vectors: Vectors | None,
    segments: tuple[Postings, ...],
    words: tuple[Words, ...],
    norm: Norm,
    size: int,
    k: int,
    allowed: Bools | None,
) -> list[tuple[Rows, Scores, Scores]]:
    """Return for each query the best `k` rows of either leg, ascending, and both scores of each.

    Ties for the last places of a leg go to earlier rows. Other threads run meanwhile if this takes
    long.

    The dense leg leaves a row out after the scan of the 8-bit copies only if its product is further
    below the k-th best than the rounding to bytes can explain. The sparse one finds rows that hold
    a term; their score is the sum over the terms, in that order, of
    ``weight * (count / (count + (length * slope + base)))``. It is fastest with the weightiest
    first.

    Parameters
    ----------
    scan, vectors
        See `Scan`, and the queries, shape (m, dim). None: there is no dense leg.
    segments
        In row order. Rows must ascend within a term, which is not checked.
    words
        The terms of each of m queries, and their weights.
    norm
        Slope and base, both at least 0 and not both 0.
    size
        Number of rows.
    k
        At least 1.
    allowed
        Rows that may be found, shape (size,); None: all.
    """
    found = _kernels.pools(scan, vectors, segments, words, norm, size, k, allowed)
    return [
        (
            np.frombuffer(rows, np.intp, n),
            np.frombuffer(dense, count=n),
            np.frombuffer(sparse, count=n),
        )
        for rows, dense, sparse, n in found
    ]


def unit_vector(vector: Vectors) -> tuple[Vectors, float]:
    """Return a vector scaled to unit length, shape (dim,), and the square of the length it had.

    If that is 0, infinite or NaN, the components mean nothing.
    """
    unit, square = _kernels.unit_vector(vector)
    return np.frombuffer(unit, np.float32), square


def vectors_at(vectors: Vectors, query: Vectors, rows: Rows) -> Scores:
    """Return the products of a query, shape (dim,), with some `rows` of vectors.

    Raises
    ------
    IndexError
        If a row does not exist.
    """
    return np.frombuffer(_kernels.vectors_at(vectors, query, rows), np.float64)


def postings_at(
    segments: tuple[Postings, ...],
    terms: list[int],
    weights: list[float],
    norm: Norm,
    size: int,
    rows: Rows,
) -> Scores:
    """Return the scores of `rows` as in `pools`, 0 without a term.

    Raises
    ------
    IndexError
        If a row does not exist.
    """
    scores = _kernels.postings_at(segments, terms, weights, norm, size, rows)
    return np.frombuffer(scores, np.float64)


Ranked: TypeAlias = tuple[Any, Any, Any, Any, Any, Any, Any, Any]
"""8 lists of the best of a pool: their positions (int), fused scores (float), scores of the dense
and of the sparse leg, their normalised scores, and their ranks (int)."""


def ranked(
    dense: Scores, sparse: Scores, weight: float, k: int, lows: tuple[float, float]
) -> Ranked | None:
    """Return the best `k` of a pool by the fused score of two legs, as `rank` has it.

    Parameters
    ----------
    dense, sparse
        Scores of the legs, shape (n,).
    weight
        Of the dense leg.
    k
        At least 1.
    lows
        The least that either leg's scores can be; infinite: the lowest of them.

    Returns
    -------
    Ranked or None
        None where a score is missing or infinite, or too far from others.
    """
    return _kernels.ranked(dense, sparse, weight, k, lows)
