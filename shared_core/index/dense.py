"""The dense leg: vectors in a growing buffer, exact scores, and the best rows.

Every score comes from one kernel that takes each row alone (ours where it is built, else numpy's
`vecdot`), so a passage has the same score whichever leg found it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Found, Rows, Scores, Vectors, top_k
from shared_core.native import kernels
from shared_core.vectors import as_floats, checked_rows, l2_normalized

if TYPE_CHECKING:
    from shared_core.index.ann import AnnIndex

Metric = Literal["cosine", "inner_product"]
Dense = Literal["flat", "ivf", "hnsw"]
Number = TypeVar("Number", np.float32, np.uint8)

GROWTH = 1.5
"""Factor by which a full buffer grows."""

FEW = 16
"""If a filter leaves at most one row in this many, only those rows are scored."""

COPIED = 512
"""Fewest rows for which 8-bit copies are made."""

TAIL = 0.1
"""Share of rows that may stay without a copy, and are scanned exactly, before they get one."""

CHUNK = 512
"""Rows that are rounded together."""

NOTHING = 1e-30
"""A vector whose largest component is below this is not scaled up to bytes."""

SHORT, LONG = 1e-12, 1e19
"""Lengths of vectors between which the squares of components keep their digits in float32."""

LINE = 64
"""Bytes of a cache line."""

ROUNDING = 4e-6
"""Float32 products of unit vectors of few dimensions, summed in another order, differ by less."""


@dataclass(frozen=True)
class Buffer(Generic[Number]):
    """Rows of an array, and room behind them.

    Adding rows makes a new one that shares the memory as long as there is room: of the buffers that
    share it, only the longest may be added to, by one thread at a time.
    """

    memory: npt.NDArray[Number]
    size: int = 0

    @property
    def rows(self) -> npt.NDArray[Number]:
        """The rows, shape (size, dim), not to be changed."""
        return self.memory[: self.size]

    def with_rows(self, rows: npt.NDArray[Number]) -> Buffer[Number]:
        """Return one that ends with `rows`; the first ones become its memory."""
        size, memory = self.size + len(rows), self.memory
        if not self.size:
            return Buffer(rows, size)
        if size > len(memory):
            room = max(size, int(self.size * GROWTH))
            memory = _aligned((room, memory.shape[1]), memory.dtype)
            memory[: self.size] = self.rows
        memory[self.size : size] = rows
        return Buffer(memory, size)


def _aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an empty array that starts at a cache line: its rows are read faster."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class ByteCopies:
    """The first rows of the vectors in 8 bits a component, which the kernels scan first.

    Attributes
    ----------
    codes
        ``vectors * scale``, rounded, plus 128.
    scale
        Maps the largest component to 127.
    margin
        Largest distance of a vector from its copy: how far a product with a vector of unit length
        can be off.
    longest
        Upper bound of the norms of these vectors, tight up to rounding.
    """

    codes: Buffer[np.uint8]
    scale: float
    margin: float = 0.0
    longest: float = 0.0

    @classmethod
    def of(cls, vectors: Vectors) -> ByteCopies:
        """Return copies of all `vectors`, shape (rows, dim)."""
        largest = _largest(vectors)
        scale = 127 / largest if largest > NOTHING else 1.0
        return cls(Buffer(np.zeros((0, vectors.shape[1]), np.uint8)), scale)._with(vectors)

    def grown(self, vectors: Vectors) -> ByteCopies:
        """Return copies of all `vectors`, or these while few rows are without one."""
        waiting = vectors[self.codes.size :]
        if len(waiting) <= TAIL * self.codes.size:
            return self
        if _largest(waiting) * self.scale > 127.5:  # a single one would widen the margin of all
            return ByteCopies.of(vectors)
        return self._with(waiting)

    def _with(self, vectors: Vectors) -> ByteCopies:
        codes = _aligned(vectors.shape, np.uint8)
        lost = vectors.shape[1] * float(np.finfo(np.float32).tiny)  # to underflowing squares
        margin, longest = self.margin, self.longest
        for start in range(0, len(vectors), CHUNK):
            chunk = vectors[start : start + CHUNK]
            scaled = chunk * np.float32(self.scale)
            rounded = np.rint(scaled.clip(-127, 127))
            np.add(rounded, 128, out=codes[start : start + CHUNK], casting="unsafe")
            margin = max(margin, _longest(scaled - rounded) / self.scale)
            longest = max(longest, (_longest(chunk) ** 2 + lost) ** 0.5)
        return ByteCopies(self.codes.with_rows(codes), self.scale, margin, longest)


@dataclass(frozen=True)
class DenseSnapshot:
    """A snapshot of the dense leg; adding vectors makes a new one.

    Attributes
    ----------
    metric
        ``"cosine"``: vectors and queries are scaled to unit length. ``"inner_product"``: as given.
    kind
        ``"flat"``: exact. ``"ivf"``, ``"hnsw"``: FAISS proposes rows, which are scored exactly.
    buffer
        Holds the vectors.
    copies
        What a ``"flat"`` scan looks at first; None for few rows, or without kernels.
    ann
        Proposes some of the first rows; None for ``"flat"``, or for few rows.
    """

    metric: Metric
    kind: Dense
    buffer: Buffer[np.float32] = field(default_factory=lambda: Buffer(np.zeros((0, 0), np.float32)))
    copies: ByteCopies | None = None
    ann: AnnIndex | None = None

    def apart(self) -> DenseSnapshot:
        """Return the same snapshot without room to grow, so that added rows go to new memory."""
        return DenseSnapshot(self.metric, self.kind, ann=self.ann).extended(self.vectors)

    @property
    def vectors(self) -> Vectors:
        """The vectors, scaled for the metric, shape (rows, dim), not to be changed."""
        return self.buffer.rows

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.buffer.size

    @property
    def dim(self) -> int | None:
        """Dimension of the vectors; None before the first."""
        return self.buffer.memory.shape[1] or None

    def checked(self, vectors: npt.ArrayLike, names: Sequence[str]) -> Vectors:
        """Return a copy of vectors scaled for the metric; names and errors as `checked_rows`."""
        rows = checked_rows(vectors, names, "the passages", self.dim)
        return l2_normalized(rows) if self.metric == "cosine" else rows

    def unit(self, vector: npt.ArrayLike | None) -> Vectors:
        """Return a query vector as float32, scaled for the metric, shape (dim,).

        Raises
        ------
        ValueError
            As `checked`, and if there is no vector.
        """
        if vector is None:
            raise ValueError("the query has no vector: embed its text")
        query = as_floats(vector, "the query")
        if kernels.built and query.shape == (self.dim,):
            unit, square = kernels.unit_vector(query)
            if SHORT**2 < square < LONG**2:
                return unit if self.metric == "cosine" else query.copy()
        return self.checked(query[None], ["the query"]).reshape(-1)

    def top_k(self, queries: Vectors, depth: int, allowed: Bools | None = None) -> list[Found]:
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
            return [top_k(rows, self.scores_of_rows(each, rows), depth) for each in queries]
        if self.ann is not None:
            return [self._rescored(self.ann, each, depth, allowed) for each in queries]
        return self._scanned(queries, depth, allowed)

    def scores_of_rows(self, query: Vectors, rows: Rows) -> Scores:
        """Return the exact scores of `rows`, shape (len(rows),)."""
        if kernels.built:
            return kernels.vectors_at(self.vectors, query, rows)
        return np.asarray(np.vecdot(self.vectors[rows], query), np.float64)

    def scan(self, allowed: Bools | None) -> kernels.Scan | None:
        """Return what the kernels search for allowed rows; None where FAISS or numpy does it."""
        if not kernels.built or self.ann is not None or (allowed is not None and _few(allowed)):
            return None
        return self._scan

    @cached_property
    def _scan(self) -> kernels.Scan:
        copies = self.copies
        if copies is None:
            return kernels.Scan(self.vectors)
        rounding = max(ROUNDING, self.vectors.shape[1] * 2.0**-24)
        bounds = copies.scale, copies.margin, copies.longest, rounding
        return kernels.Scan(self.vectors, copies.codes.rows, *bounds)

    def _scanned(self, queries: Vectors, depth: int, allowed: Bools | None) -> list[Found]:
        """Score all rows, or prove by their copies that others score higher."""
        if not kernels.built:
            rows = np.arange(self.size) if allowed is None else allowed.nonzero()[0]
            return [top_k(rows, np.vecdot(self.vectors, each)[rows], depth) for each in queries]
        words: tuple[kernels.Words, ...] = (([], []),) * len(queries)
        pools = kernels.pools(self._scan, queries, (), words, (0.0, 1.0), self.size, depth, allowed)
        return [(rows, scores) for rows, scores, _ in pools]

    def _rescored(self, ann: AnnIndex, query: Vectors, depth: int, allowed: Bools | None) -> Found:
        """Score what FAISS proposes and the rows it lacks; all rows where it finds too few."""
        mask = np.ones(self.size, np.bool_) if allowed is None else allowed
        rows = ann.proposed(query, depth, None if allowed is None else allowed[: ann.size])
        if rows.size < min(depth, int(np.count_nonzero(mask[: ann.size]))):
            return self._scanned(query[None], depth, allowed)[0]
        rows = np.append(rows, ann.size + mask[ann.size :].nonzero()[0])
        return top_k(rows, self.scores_of_rows(query, rows), depth)

    def extended(self, vectors: Vectors) -> DenseSnapshot:
        """Return the snapshot with `vectors`, from `checked`, in new rows at the end."""
        grown = replace(self, buffer=self.buffer.with_rows(vectors))
        if self.kind != "flat":
            from shared_core.index.ann import AnnIndex  # FAISS is loaded where it is asked for

            return replace(grown, ann=AnnIndex.covering(self.kind, grown.vectors, self.ann))
        if self.copies is not None:
            return replace(grown, copies=self.copies.grown(grown.vectors))
        copied = kernels.built and grown.size >= COPIED
        return replace(grown, copies=ByteCopies.of(grown.vectors) if copied else None)

    def compacted(self, keep: Bools) -> DenseSnapshot:
        """Return a snapshot of only the rows in `keep`, renumbered in order."""
        return DenseSnapshot(self.metric, self.kind).extended(self.vectors[keep])


def _few(allowed: Bools) -> bool:
    """Return whether so few rows are allowed that only those are scored."""
    return FEW * int(np.count_nonzero(allowed)) <= allowed.size


def _largest(values: Vectors) -> float:
    """Return the absolute value of the largest component."""
    return max(float(values.max()), -float(values.min()))


def _longest(rows: Vectors) -> float:
    """Return the length of the longest row."""
    return math.sqrt(np.vecdot(rows, rows).max())
