"""Approximate preselection with FAISS: an 8-bit scan, an inverted file, or a graph.

Each holds the vectors in 8 bits a dimension; the caller scores the selected rows exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import faiss
import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Rows, Scores, Vectors
from shared_core.index.dense.faiss_memory import memory
from shared_core.native import kernels

Kind = Literal["sq8", "ivf", "hnsw"]

SHORTLIST = 4
"""Rows preselected for each requested one."""

AT_LEAST = 128
"""Fewest rows preselected; also the smallest breadth of the graph search."""

TAIL = 0.1
"""Share of rows that may stay outside, scanned exactly, before they are added."""

SMALL = 4096
"""Rows below which a scan is fast enough, and nothing is preselected."""

COPIED = 512
"""Fewest rows for which 8-bit copies are made. Without compiled kernels they are used from `SMALL`
rows on."""

CLUSTERS_PER_ROOT = 4
"""Lists of the inverted file for each unit of the square root of the rows."""

ROWS_PER_LIST = 40
"""Training rows for each list; with fewer than 39 FAISS warns."""

PROBES = 16
"""Lists of the inverted file that a query visits."""

NEIGHBOURS = 32
"""Neighbours of a node in the graph."""

NOTHING = 1e-30
"""A vector whose largest component is below this is not scaled up to bytes."""

CODEC = faiss.ScalarQuantizer.QT_8bit_direct_signed
"""How FAISS keeps the 8-bit copies: whole numbers from -128 to 127, plus 128."""

UNDERFLOW = 2.0**-149
"""What a float32 product of two components may lose to underflow, besides rounding."""

CHUNK = 512
_SEED = 1234


@dataclass(frozen=True)
class Approximate:
    """A FAISS index over the first `size` rows of the vectors. Never changed once made.

    Attributes
    ----------
    kind
        ``"sq8"``, ``"ivf"`` or ``"hnsw"``.
    index
        The FAISS index; it holds ``vectors * scale`` rounded to signed bytes.
    scale
        Maps the largest component to 127.
    trained
        Number of rows when the inverted file was trained.
    margin
        Largest distance of a vector from its 8-bit copy: how far a product with a vector of unit
        length can be off.
    """

    kind: Kind
    index: faiss.Index
    scale: float
    trained: int
    margin: float = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the view of FAISS's memory."""
        return Approximate, (self.kind, self.index, self.scale, self.trained, self.margin)

    @property
    def size(self) -> int:
        """Number of rows covered."""
        return int(self.index.ntotal)

    @classmethod
    def build(cls, kind: Kind, vectors: Vectors) -> Approximate | None:
        """Build over all `vectors`, shape (rows, dim); None where a scan is fast enough."""
        rows, dim = vectors.shape
        if rows < (COPIED if kind == "sq8" else SMALL):
            return None
        scale = _scale(vectors)
        made = cls(kind, _make(kind, dim, rows), scale, rows)
        if not made.index.is_trained:
            step = max(1, rows // (64 * made.index.nlist))
            with _threads(kind):
                made.index.train(made._rounded(vectors[::step] * np.float32(scale)))
        return made._with(vectors)

    def grown(self, vectors: Vectors) -> Approximate | None:
        """Return one that covers all `vectors`, or itself while few rows are outside."""
        waiting = vectors.shape[0] - self.size
        if waiting <= TAIL * self.size:
            return self
        outdated = self.kind == "ivf" and vectors.shape[0] > 4 * self.trained
        if outdated or (self.kind == "sq8" and self._clips(vectors[self.size :])):
            return Approximate.build(self.kind, vectors)
        made = replace(self, index=faiss.clone_index(self.index))
        return made._with(vectors[self.size :])

    def _clips(self, vectors: Vectors) -> bool:
        """Whether a component is too large for the scale: a single one widens the margin of all."""
        return _largest(vectors) * self.scale > 127.5

    def search(
        self, queries: Vectors, k: int, allowed: Bools | None, *, longest: float, rounding: float
    ) -> list[tuple[Rows, float]]:
        """Return for each query ascending rows with most of the best `k` among them, and a bound.

        Where all rows are scanned (``sq8``), no other allowed row scores higher than the bound,
        or than the `k`-th best of those returned.

        Parameters
        ----------
        queries
            Shape (m, dim).
        k
            At least 1.
        allowed
            Rows that may be found, shape (size,); None: all.
        longest
            Largest norm of a vector.
        rounding
            How much exact scores of vectors of unit length may differ by the order in which they
            are summed.
        """
        wanted = min(max(SHORTLIST * k, AT_LEAST), self.size)
        bits = None if allowed is None else np.packbits(allowed, bitorder="little")
        params = self._parameters(wanted, bits)
        # Whole numbers within a signed byte: some of FAISS's kernels truncate the query to bytes,
        # and thus every component of a unit vector to zero.
        scales = np.array([[_scale(query)] for query in queries], np.float32)
        rounded = np.rint(queries * scales)
        with _one_thread():
            scores, found = self.index.search(rounded, wanted, params=params)
        cut = _lengths(queries - rounded / scales)
        length = _lengths(queries)
        off = self.margin * (length + cut) + longest * (cut + rounding * length)
        off += queries.shape[1] * UNDERFLOW
        near = scores / (self.scale * scales.astype(np.float64))
        return [_shortlist(*each, k) for each in zip(found, near, off.tolist(), strict=True)]

    @property
    def compiled(self) -> bool:
        """Whether the kernels find all of the best rows by `codes`; else `search` proposes some."""
        return kernels.built and self.kind == "sq8" and self.codes.shape[1] <= kernels.WIDEST

    @property
    def repays(self) -> bool:
        """Whether it finds rows faster than a scan of all of them."""
        return self.compiled or self.size >= SMALL

    @cached_property
    def codes(self) -> npt.NDArray[np.uint8]:
        """The 8-bit copies as FAISS holds them, shape (size, dim): rounded, plus 128."""
        return memory(self.index, np.uint8)[: self.size]

    def _parameters(
        self, wanted: int, bits: npt.NDArray[np.uint8] | None
    ) -> faiss.SearchParameters | None:
        options = {} if bits is None else {"sel": faiss.IDSelectorBitmap(bits)}
        if self.kind == "ivf":
            return faiss.SearchParametersIVF(nprobe=PROBES, **options)
        if self.kind == "hnsw":
            return faiss.SearchParametersHNSW(efSearch=wanted, **options)
        return faiss.SearchParameters(**options) if options else None

    def _with(self, vectors: Vectors) -> Approximate:
        """Add rows to an index that nobody else holds yet."""
        margin = self.margin
        if self.kind == "sq8":  # at once: a growing array takes up to twice the room
            self.index.codes.resize((self.size + len(vectors)) * self.index.code_size)
        for start in range(0, len(vectors), CHUNK):
            scaled = vectors[start : start + CHUNK] * np.float32(self.scale)
            rounded = self._rounded(scaled)
            with _threads(self.kind):
                self.index.add(rounded)
            scaled -= rounded
            margin = max(margin, float(np.vecdot(scaled, scaled).max()) ** 0.5 / self.scale)
        return replace(self, margin=margin)

    def _rounded(self, scaled: Vectors) -> Vectors:
        return np.asarray(np.rint(scaled.clip(-127, 127)))


def _threads(kind: Kind) -> AbstractContextManager[None]:
    """Let FAISS build with all its threads, where they make it faster."""
    return _one_thread() if kind == "sq8" else nullcontext()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep FAISS to the calling thread: more threads do not make a single query faster.

    FAISS waits for all of them, which on busy cores takes many times as long as the search.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # for this thread alone
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _shortlist(rows: Rows, near: Scores, off: float, k: int) -> tuple[Rows, float]:
    """Return those of the `rows` found that can be among the best `k`, ascending, and a bound.

    Parameters
    ----------
    rows, near
        Best first, shape (wanted,); a row of -1 where no more were found. `near` are scores by the
        copies.
    off
        Largest error of these scores.
    k
        At least 1.
    """
    if rows[-1] < 0:  # there are no others
        return np.sort(rows[rows >= 0]), -np.inf
    # A row further below the k-th than both errors together is not among the best.
    close = np.count_nonzero(near >= near[min(k, near.size) - 1] - 2 * off)
    return np.sort(rows[:close]), float(near[-1]) + off


def _scale(values: Vectors) -> float:
    """Return the factor that maps the largest of `values` to 127; 1 if all are near zero."""
    largest = _largest(values)
    return 127 / largest if largest > NOTHING else 1.0


def _largest(values: Vectors) -> float:
    """Return the absolute value of the largest component."""
    return max(float(values.max()), -float(values.min()))


def _lengths(rows: Vectors) -> Scores:
    """Return the lengths of vectors, shape (m, dim)."""
    exact = rows.astype(np.float64)  # squares of small components would be 0 in float32
    return np.asarray(np.sqrt(np.vecdot(exact, exact)))


def _make(kind: Kind, dim: int, rows: int) -> faiss.Index:
    metric = faiss.METRIC_INNER_PRODUCT
    if kind == "sq8":
        return faiss.IndexScalarQuantizer(dim, CODEC, metric)
    if kind == "hnsw":
        return faiss.IndexHNSWSQ(dim, CODEC, NEIGHBOURS, metric)
    lists = int(min(CLUSTERS_PER_ROOT * rows**0.5, rows / ROWS_PER_LIST))
    coarse = faiss.IndexFlatIP(dim)
    index = faiss.IndexIVFScalarQuantizer(coarse, dim, lists, CODEC, metric, False)
    index.own_fields = True
    coarse.this.disown()
    index.cp.seed = _SEED
    return index
