"""Reading the two legs of a saved index back, and checking them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import faiss
import numpy as np
import numpy.typing as npt

from shared_core.arrays import Ints, Vectors
from shared_core.errors import CorruptIndexError
from shared_core.index.dense.approximate import CODEC, Approximate, Kind
from shared_core.index.dense.view import Dense, DenseView, Metric
from shared_core.index.persistence.array_files import read_array
from shared_core.index.persistence.files import (
    APPROXIMATE,
    DF,
    LENGTHS,
    VECTORS,
    postings_name,
    segments_of,
)
from shared_core.index.persistence.manifest import MANIFEST, corrupt_if_unreadable
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.index.sparse.lexicon import Lexicon
from shared_core.index.sparse.postings import Segment
from shared_core.index.sparse.view import SparseView

_FAISS: Mapping[Kind, type[faiss.Index]] = {
    "sq8": faiss.IndexScalarQuantizer,
    "ivf": faiss.IndexIVFScalarQuantizer,
    "hnsw": faiss.IndexHNSWSQ,
}


def read_dense(data: Path, manifest: Mapping[str, Any]) -> DenseView:
    """Read the dense leg; see `read_state`."""
    about, dim = manifest["dense"], manifest["dim"]
    with corrupt_if_unreadable(data.parent / MANIFEST):
        view = _described(about)
    vectors = _read_vectors(data / VECTORS, (manifest["passages"], dim or 0))
    approximate = None
    if "approximate" in about:
        kind: Kind = "sq8" if view.kind == "flat" else view.kind
        with corrupt_if_unreadable(data.parent / MANIFEST):
            options = _approximate_options(**about["approximate"])
        approximate = Approximate(kind, _read_faiss(data / APPROXIMATE, kind, vectors), *options)
    return view if dim is None else view.stored(vectors, approximate)


def _described(about: Mapping[str, Any]) -> DenseView:
    """Return the dense leg, still empty, that a manifest describes."""
    metric: Any = about.get("metric")
    kind: Any = about.get("kind")
    longest = about.get("longest")
    if metric not in get_args(Metric) or kind not in get_args(Dense):
        raise ValueError(f"there is no dense leg of metric {metric!r} and kind {kind!r}")
    if not isinstance(longest, float) or not 0 <= longest < math.inf:
        raise ValueError(f"the longest vector has length {longest!r}")
    return DenseView(metric, kind, longest=longest)


def _approximate_options(*, scale: object, trained: object, margin: object) -> tuple[Any, ...]:
    """Return the fields of an `Approximate` besides its kind and its FAISS index."""
    if not isinstance(scale, float) or not 0 < scale < math.inf:
        raise ValueError(f"the vectors are scaled by {scale!r}")
    if not isinstance(trained, int) or trained < 1:
        raise ValueError(f"the approximate index was trained on {trained!r} rows")
    if not isinstance(margin, float) or not 0 <= margin < math.inf:
        raise ValueError(f"the 8-bit copies are off by {margin!r}")
    return scale, trained, margin


def _read_vectors(path: Path, shape: tuple[int, int]) -> Vectors:
    vectors = read_array(path, 2, np.float32)
    with corrupt_if_unreadable(path):
        if vectors.shape != shape:
            raise ValueError(f"its shape is {vectors.shape}, not {shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            finite = np.isfinite(np.vecdot(vectors, vectors)).all()
        if not finite:
            raise ValueError("it holds NaN, infinite or huge values")
    return vectors


def _read_faiss(path: Path, kind: Kind, vectors: Vectors) -> faiss.Index:
    rows, dim = vectors.shape
    with corrupt_if_unreadable(path):
        index = faiss.read_index(str(path))
        fits = type(index) is _FAISS[kind] and index.metric_type == faiss.METRIC_INNER_PRODUCT
        if kind == "sq8":  # whose codes we read ourselves
            fits = fits and index.sq.qtype == CODEC and index.codes.size() == index.ntotal * dim
        if not (fits and index.is_trained and index.d == dim and 0 < index.ntotal <= rows):
            raise ValueError(f"it is not an index of kind {kind!r} over the vectors")
        if kind == "ivf" and not np.array_equal(np.sort(_listed(index)), np.arange(index.ntotal)):
            raise ValueError("its lists do not hold each row once")
    return index


def _listed(index: faiss.IndexIVF) -> npt.NDArray[np.int64]:
    """Return the rows in the lists of an inverted file, list by list."""
    lists = index.invlists
    if lists is None:  # FAISS reads a file without them
        return np.zeros(0, np.int64)
    sizes = map(lists.list_size, range(lists.nlist))
    held = [faiss.rev_swig_ptr(lists.get_ids(at), size) for at, size in enumerate(sizes) if size]
    return np.concatenate([np.zeros(0, np.int64), *held])


def read_sparse(data: Path, manifest: Mapping[str, Any], lexicon: Lexicon) -> SparseView:
    """Read the sparse leg; see `read_state`."""
    with corrupt_if_unreadable(data.parent / MANIFEST):
        options = BM25Options(**manifest["bm25"])
    rows, df = manifest["passages"], read_array(data / DF, 1, np.int64)
    lengths = read_array(data / LENGTHS, 1, np.int32)
    not_theirs = f"it does not hold the lengths of {rows} passages"
    with corrupt_if_unreadable(data / LENGTHS):
        if lengths.shape != (rows,) or lengths.min(initial=0) < 0:
            raise ValueError(not_theirs)
    segments: list[Segment] = []
    found, first, occurrences = np.zeros(df.size, np.int64), 0, 0
    for number in range(segments_of(manifest["files"])):
        segment = _read_segment(data, number, range(first, rows), df.size, lengths)
        found[segment.terms] += np.diff(segment.starts)
        first = int(segment.rows.max(initial=first - 1)) + 1
        occurrences += int(segment.counts.sum())
        segments.append(segment)
    with corrupt_if_unreadable(data / DF):
        if df.size > len(lexicon) or not np.array_equal(df, found):
            raise ValueError("it counts other words than the postings hold")
    with corrupt_if_unreadable(data / LENGTHS):
        if lengths.sum() != occurrences:
            raise ValueError(not_theirs)
    return SparseView(options, tuple(segments), lengths, df, lexicon)


def _read_segment(data: Path, number: int, among: range, vocabulary: int, lengths: Ints) -> Segment:
    def read(name: str, *dtypes: type[np.integer]) -> npt.NDArray[Any]:
        return read_array(data / postings_name(number, name), 1, *dtypes)

    terms, starts, rows = read("terms", np.int32), read("starts", np.int64), read("rows", np.int32)
    counts = read("counts", np.uint16, np.int32)
    for name, sound in _soundness(terms, starts, rows, counts, among, vocabulary):
        if not sound:
            path = data / postings_name(number, name)
            raise CorruptIndexError(f"{path} cannot be read: it holds no {name} of postings")
    return Segment.of(terms, starts, rows, counts, lengths[rows])


def _soundness(
    terms: Ints,
    starts: npt.NDArray[np.int64],
    rows: Ints,
    counts: npt.NDArray[np.integer],
    among: range,
    vocabulary: int,
) -> Iterator[tuple[str, bool]]:
    """Yield for each array of a segment whether it is valid, given those before it."""
    yield "terms", _within(terms, range(vocabulary)) and bool((terms[1:] > terms[:-1]).all())
    ends = starts.size == terms.size + 1 and starts[0] == 0 and starts[-1] == rows.size
    yield "starts", bool(ends and (starts[1:] > starts[:-1]).all())
    later = rows[1:] > rows[:-1]
    later[starts[1:-1] - 1] = True  # the first row of the next term
    yield "rows", _within(rows, among) and bool(later.all())
    yield "counts", counts.shape == rows.shape and bool(counts.min(initial=1) > 0)


def _within(values: npt.NDArray[np.integer], among: range) -> bool:
    return values.size == 0 or bool(among.start <= values.min() and values.max() < among.stop)
