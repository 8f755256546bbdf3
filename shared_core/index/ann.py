"""Approximate search with FAISS, for collections too large to scan: an inverted file, or a graph.

FAISS proposes more rows than are wanted; the caller scores them exactly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import faiss
import numpy as np

from shared_core.arrays import Bools, Rows, Vectors

Kind = Literal["ivf", "hnsw"]

OVER_FETCH = 4
"""Rows proposed for each requested one."""

AT_LEAST = 128
"""Fewest rows proposed; also the smallest breadth of the graph search."""

SMALL = 4096
"""Rows below which a scan is fast enough."""

TAIL = 0.1
"""Share of rows that may stay outside, scored one by one, before they are added."""

CLUSTERS_PER_ROOT = 4
"""Lists of the inverted file for each unit of the square root of the rows."""

ROWS_PER_LIST = 40
"""Training rows for each list; with fewer than 39 FAISS warns."""

TRAINING = 64
"""Most training rows for each list."""

PROBES = 16
"""Lists of the inverted file that a query visits."""

NEIGHBOURS = 32
"""Neighbours of a node in the graph."""

STORED = "SQbf16"
"""How FAISS holds the vectors: in half the room, over the whole range of float32."""

PROCESS = os.getpid()
"""The process whose threads FAISS may use; in one that is forked from it they are gone."""


@dataclass(frozen=True)
class AnnIndex:
    """A FAISS index over the first `size` rows of the vectors. Never changed once made."""

    kind: Kind
    index: faiss.Index

    @property
    def size(self) -> int:
        """Number of rows covered."""
        return int(self.index.ntotal)

    @classmethod
    def covering(cls, kind: Kind, vectors: Vectors, present: AnnIndex | None) -> AnnIndex | None:
        """Return one over `vectors`, shape (rows, dim); None where a scan is fast enough.

        It is the `present` one as long as that lacks only few of the last rows.
        """
        rows, dim = vectors.shape
        if present is not None and rows <= (1 + TAIL) * present.size:
            return present
        if rows < SMALL:
            return None
        lists = int(min(CLUSTERS_PER_ROOT * rows**0.5, rows / ROWS_PER_LIST))
        # Lists that were made for far fewer rows are too long.
        if present is not None and not (kind == "ivf" and lists > 2 * present.index.nlist):
            index = faiss.clone_index(present.index)  # others may be searching the present one
        else:
            structure = f"IVF{lists}" if kind == "ivf" else f"HNSW{NEIGHBOURS}"
            index = faiss.index_factory(dim, f"{structure},{STORED}", faiss.METRIC_INNER_PRODUCT)
        with nullcontext() if os.getpid() == PROCESS else _one_thread():
            if not index.is_trained:
                index.train(vectors[:: max(1, rows // (TRAINING * lists))])
            index.add(vectors[index.ntotal :])
        return cls(kind, index)

    @classmethod
    def read(cls, path: Path, kind: Kind, vectors: Vectors) -> AnnIndex:
        """Read what `write` wrote for the first of `vectors`; ValueError if it is anything else."""
        index = faiss.read_index(str(path))
        form = faiss.IndexIVFScalarQuantizer if kind == "ivf" else faiss.IndexHNSWSQ
        if not (
            type(index) is form and index.d == vectors.shape[1] and index.ntotal <= len(vectors)
        ):
            raise ValueError(f"it is not an index of kind {kind!r} over the vectors")
        return cls(kind, index)

    def write(self, path: Path) -> None:
        """Write it into a file."""
        faiss.write_index(self.index, str(path))

    def proposed(self, query: Vectors, k: int, allowed: Bools | None) -> Rows:
        """Return ascending rows with most of the best `k` among them.

        Parameters
        ----------
        query
            Shape (dim,).
        k
            At least 1.
        allowed
            Rows that may be found, shape (size,); None: all.
        """
        wanted = min(max(OVER_FETCH * k, AT_LEAST), self.size)
        selector = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        if self.kind == "ivf":
            params = faiss.SearchParametersIVF(sel=selector, nprobe=PROBES)
        else:
            params = faiss.SearchParametersHNSW(sel=selector, efSearch=wanted)
        with _one_thread():
            _, (rows,) = self.index.search(query[None], wanted, params=params)
        return np.sort(rows[rows >= 0])  # -1 where no more were found


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep FAISS to the calling thread.

    More do not make a single query faster: FAISS waits for all of them, which on busy cores takes
    many times as long as the search. In a forked process it would wait for ever.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # for this thread alone
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
