"""The dense leg: vectors in FAISS, exact scores, and optional approximate candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import faiss
import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found, Rows, Vectors
from shared_core.index.dense.approximate import Approximate
from shared_core.index.dense.faiss_memory import memory
from shared_core.index.dense.products import best_of_all, products
from shared_core.index.select import best_of, kth_best
from shared_core.native import kernels
from shared_core.vectors import l2_normalized

Metric = Literal["cosine", "inner_product"]
Dense = Literal["flat", "sq8", "ivf", "hnsw"]

GROWTH = 1.5
"""Factor by which a full store grows."""

FEW = 16
"""If a filter leaves at most one row in this many, only those rows are scanned."""

TINY = 1e-12
"""Length of vectors below which the squares of components lose digits in float32."""

NOT_REAL = "cmMSTU"
"""Kinds of NumPy types that it would convert to floats, though they are no real numbers."""

ROUNDING = 4e-6
"""Float32 products of unit vectors of few dimensions, summed in another order, differ by less."""


@dataclass(frozen=True)
class DenseView:
    """A snapshot of the dense leg; adding vectors makes a new one.

    Attributes
    ----------
    metric
        ``"cosine"``: vectors and queries are scaled to unit length. ``"inner_product"``: as given.
    kind
        ``"flat"``: exact. Otherwise the approximate index that preselects.
    store
        FAISS flat index whose memory holds the vectors, with room to grow; None before the first.
    vectors
        That memory up to this snapshot's last row, shape (rows, dim). Read-only.
    longest
        Upper bound of the vectors' norms, tight up to rounding.
    approximate
        Preselects among the first rows; the rows after them are scanned.
    """

    metric: Metric
    kind: Dense
    store: faiss.IndexFlatIP | None = None
    vectors: Vectors = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    longest: float = 0.0
    approximate: Approximate | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without FAISS's room to grow and the memory that the vectors share with it."""
        return _restored, (self.metric, self.kind, self.vectors, self.longest, self.approximate)

    def apart(self) -> DenseView:
        """Return the same view without room to grow, so that added vectors go to new memory."""
        return self if self.store is None else replace(self, store=_roomy(self.store.d, 0))

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.vectors)

    @property
    def dim(self) -> int | None:
        """Dimension of the vectors; None before the first."""
        return None if self.store is None else self.vectors.shape[1]

    def checked(self, vectors: npt.ArrayLike, names: Sequence[str]) -> Vectors:
        """Return a copy of `vectors` as float32, scaled for the metric.

        Parameters
        ----------
        vectors
            Shape (len(names), dim).
        names
            What each row belongs to, for error messages.

        Raises
        ------
        ValueError
            If the shape is wrong, or a value is NaN or infinite.
        """
        try:
            matrix = _as_floats(vectors, "the embeddings are")
        except ValueError as error:
            raise _dimension_error(vectors, names) or error from None
        if matrix.ndim != 2 or matrix.shape[0] != len(names) or matrix.shape[1] == 0:
            raise ValueError(f"expected {len(names)} embeddings, got shape {matrix.shape}")
        if self.dim is not None and matrix.shape[1] != self.dim:
            raise ValueError(
                f"the index holds vectors of dimension {self.dim}, got dimension "
                f"{matrix.shape[1]}: embed with the model the index was built with"
            )
        with np.errstate(over="ignore"):  # raised below
            squares = np.vecdot(matrix, matrix)
        for at in (~np.isfinite(squares)).nonzero()[0].tolist():
            raise ValueError(f"the embedding of {names[at]} holds NaN, infinite or huge values")
        return l2_normalized(matrix) if self.metric == "cosine" else matrix.copy()

    def unit(self, vector: npt.ArrayLike | None) -> Vectors:
        """Return a query vector as float32, scaled for the metric, shape (dim,).

        Raises
        ------
        ValueError
            As `checked`, and if there is no vector.
        """
        if vector is None:
            raise ValueError("the query has no vector: embed its text")
        unit = self._scaled(vector) if kernels.built else None
        if unit is None:
            query = _as_floats(vector, "the embedding of the query is")
            query = query.astype(np.float32, order="C")  # a plain array, as kernels take it
            unit = self._scaled(query)
            if unit is None:
                unit = self.checked(query[None], ["the query"]).reshape(-1)
        return unit

    def _scaled(self, vector: npt.ArrayLike) -> Vectors | None:
        """Like `unit` for a vector of ordinary length; None for any other.

        Without kernels, only a float32 array counts as one.
        """
        scaled = self.metric == "cosine"
        if kernels.built:
            return kernels.unit_vector(vector, self.dim or 0, shortest=TINY, scaled=scaled)
        query = np.asarray(vector)
        with np.errstate(over="ignore", invalid="ignore"):
            square = float(query @ query) if query.shape == (self.dim,) else 0.0
        if not TINY**2 < square < np.inf:
            return None
        return np.asarray(query * np.float32(square**-0.5 if scaled else 1.0))

    @cached_property
    def scan(self) -> kernels.Scan:
        """The vectors as the kernels search them."""
        copies = self.approximate
        if copies is None or not copies.compiled:
            return kernels.Scan(self.vectors)
        return kernels.Scan(
            self.vectors, copies.codes, copies.scale, copies.margin, self.longest, self._rounding
        )

    @property
    def _rounding(self) -> float:
        """How much products of unit vectors may differ by the order of summation."""
        return max(ROUNDING, float(self.vectors.shape[1]) * 2.0**-24)

    def scanned(self, allowed: Bools | None) -> bool:
        """Whether the best of the allowed rows are found by a pass over `scan`."""
        return self._by_kernels and not _few(allowed)

    @property
    def _by_kernels(self) -> bool:
        return kernels.built and (self.approximate is None or self.approximate.compiled)

    def best(self, queries: Vectors, depth: int, allowed: Bools | None = None) -> list[Found]:
        """Return for each query its best rows and their scores; ties go to earlier rows.

        Parameters
        ----------
        queries
            From `unit`, shape (m, dim).
        depth
            How many rows to find, at least 1.
        allowed
            Rows that may be found, shape (rows,); all by default.
        """
        if allowed is not None and _few(allowed):
            rows = allowed.nonzero()[0]
            return [best_of(rows, products(self.vectors, each, rows), depth) for each in queries]
        if self._by_kernels:
            return kernels.best_vectors(self.scan, queries, depth, allowed)
        approximate = self.approximate
        if approximate is None or not approximate.repays:
            return [best_of_all(self.vectors, each, depth, allowed) for each in queries]
        covered = None if allowed is None else allowed[: approximate.size]
        found = approximate.search(
            queries, depth, covered, longest=self.longest, rounding=self._rounding
        )
        return [
            self._rescored(approximate.size, vector, rows, bound, depth, allowed)
            for vector, (rows, bound) in zip(queries, found, strict=True)
        ]

    def _rescored(
        self,
        first: int,
        vector: Vectors,
        rows: Rows,
        bound: float,
        depth: int,
        allowed: Bools | None,
    ) -> Found:
        """Score only a short list, or all rows where the best may not be on it.

        For ``flat`` the distance of every vector from its 8-bit copy proves that they are.
        """
        covered = None if allowed is None else allowed[:first]
        enough = rows.size >= min(depth, first if covered is None else np.count_nonzero(covered))
        if first < self.size:
            waiting = None if allowed is None else allowed[first:]
            best, _ = best_of_all(self.vectors[first:], vector, depth, waiting)
            rows = np.concatenate([rows, first + best])
        scores = products(self.vectors, vector, rows)
        if enough and (self.kind != "flat" or kth_best(scores, depth) > bound):
            return best_of(rows, scores, depth)
        return best_of_all(self.vectors, vector, depth, allowed)

    def extended(self, vectors: Vectors) -> DenseView:
        """Return the view with `vectors`, from `checked`, in new rows at the end."""
        lost = vectors.shape[1] * float(np.finfo(np.float32).tiny)  # to underflowing squares
        longest = max(self.longest, (float(np.vecdot(vectors, vectors).max()) + lost) ** 0.5)
        view = replace(self.stored(vectors, self.approximate), longest=longest)
        return replace(view, approximate=view._grown())

    def stored(self, vectors: Vectors, approximate: Approximate | None) -> DenseView:
        """Return the view with `vectors` in new rows and `approximate` as given."""
        size, dim = self.size + vectors.shape[0], vectors.shape[1]
        store = self.store
        if store is None or store.codes.size() < 4 * size * dim:
            store = _roomy(dim, max(size, int(self.size * GROWTH)))
            if self.size:
                memory(store, np.float32)[: self.size] = self.vectors
        memory(store, np.float32)[self.size : size] = vectors
        store.ntotal = size
        held = memory(store, np.float32)[:size]
        return replace(self, store=store, vectors=held, approximate=approximate)

    def _grown(self) -> Approximate | None:
        if self.approximate is None:
            return Approximate.build("sq8" if self.kind == "flat" else self.kind, self.vectors)
        return self.approximate.grown(self.vectors)

    def compacted(self, keep: Bools) -> DenseView:
        """Return a view of only the rows in `keep`, renumbered in order."""
        empty = DenseView(self.metric, self.kind)
        kept = self.vectors[keep]
        return empty.extended(kept) if len(kept) else empty.stored(kept, None)


def _few(allowed: Bools | None) -> bool:
    return allowed is not None and FEW * int(np.count_nonzero(allowed)) <= allowed.size


def _as_floats(vectors: npt.ArrayLike, they_are: str) -> Vectors:
    """Return a float32 array, in which too large values are infinite."""
    try:
        with np.errstate(over="ignore"):
            if isinstance(vectors, list) and len(vectors) > 1:
                return _row_by_row(vectors)
            return _real(vectors).astype(np.float32, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{they_are} not numbers of equal shape: {error}") from error


def _row_by_row(vectors: list[npt.ArrayLike]) -> Vectors:
    """Return a float32 array of a list; other threads, such as an event loop, run in between."""
    first = _real(vectors[0])
    matrix = np.empty((len(vectors), *first.shape), np.float32)
    for at, vector in enumerate(vectors):
        # Of lists the first one tells; to find out costs NumPy a fifth more time.
        row = _real(vector) if isinstance(vector, np.ndarray) else np.asarray(vector, np.float32)
        if row.shape != first.shape:
            raise ValueError(f"vector {at} has shape {row.shape}, the first {first.shape}")
        matrix[at] = row
    return matrix


def _real(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array of real numbers; TypeError for text, dates and complex numbers."""
    array = np.asarray(values)
    if array.dtype.kind in NOT_REAL:
        raise TypeError(f"got values of type {array.dtype}")
    return array


def _dimension_error(vectors: npt.ArrayLike, names: Sequence[str]) -> ValueError | None:
    """Return an error that names the first embedding whose dimension is not the first one's.

    None if all are equal, or the embeddings have no length.
    """
    try:
        sizes = [len(vector) for vector in vectors]  # type: ignore[arg-type, union-attr]
    except TypeError:
        return None
    for name, size in zip(names, sizes, strict=False):
        if size != sizes[0]:
            return ValueError(
                f"the embedding of {name} has dimension {size}, that of {names[0]} has "
                f"{sizes[0]}: embed all of them with one model"
            )
    return None


def _restored(
    metric: Metric,
    kind: Dense,
    vectors: Vectors,
    longest: float,
    approximate: Approximate | None,
) -> DenseView:
    view = DenseView(metric, kind, longest=longest)
    return view.stored(vectors, approximate) if vectors.shape[1] else view


def _roomy(dim: int, rows: int) -> faiss.IndexFlatIP:
    """Return a flat index with memory for `rows` vectors, so that growing moves none of them."""
    store = faiss.IndexFlatIP(dim)
    store.codes.resize(4 * dim * rows)
    return store
