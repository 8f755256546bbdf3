"""The files of an index: vectors, postings, terms and passages. No pickle.

Their checksums, in the manifest, reveal damage. What a search relies on without looking, such as
the order of the postings, is checked beside them: it would give wrong scores in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.errors import CorruptIndexError
from shared_core.index.dense import DenseSnapshot
from shared_core.index.snapshot import HybridSnapshot
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.index.sparse.postings import Segment
from shared_core.index.sparse.snapshot import SparseSnapshot
from shared_core.index.sparse.vocabulary import Vocabulary
from shared_core.types import Passage, Tokenizer

VECTORS, ANN, TERMS, PASSAGES = "vectors.npy", "ann.faiss", "terms.json", "passages.jsonl"

POSTINGS = {"terms": "int32", "starts": "int64", "rows": "int32", "counts": "uint16 int32"}
"""Arrays of a segment, each in its own file, and what their numbers may be."""

SHOWN = 40
"""Most characters of a passage's text in an error."""

Coder = Callable[[Any], Any]


@dataclass(frozen=True)
class Undecoded:
    """The source of a passage as it was saved, where nothing decodes it; it is saved again so."""

    data: Any


def write_files(data: Path, state: HybridSnapshot, encode: Coder | None) -> None:
    """Write a state without deleted rows into the folder `data`, while later ones may be made."""
    sparse, dense = state.sparse, state.dense
    words = list(sparse.vocabulary.ids)[: sparse.df.size]  # others may be learning more
    np.save(data / VECTORS, dense.vectors)
    for number, segment in enumerate(sparse.segments):
        for name in POSTINGS:
            np.save(data / _postings_name(number, name), getattr(segment, name))
    if dense.ann is not None:
        dense.ann.write(data / ANN)
    (data / TERMS).write_text(json.dumps(words), encoding="utf-8")
    with (data / PASSAGES).open("w", encoding="utf-8") as lines:
        for passage in state.passages[: state.size]:
            lines.write(_dump(passage, encode) + "\n")


def _postings_name(number: int, name: str) -> str:
    return f"postings-{number:02}-{name}.npy"


def _dump(passage: Passage, encode: Coder | None) -> str:
    metadata = dict(passage.metadata)
    text = passage.text if len(passage.text) <= SHOWN else passage.text[:SHOWN] + "..."
    owner = f"passage {passage.id!r} ({text!r})"
    check_json(metadata, "metadata", owner)
    record = {"id": passage.id, "text": passage.text, "metadata": metadata}
    if isinstance(passage.source, Undecoded):
        record["source"] = passage.source.data
    elif encode is not None:
        record["source"] = encode(passage.source)
        check_json(record["source"], "source", owner)
    return json.dumps(record)


def check_json(value: Any, name: str, owner: str) -> None:
    """Raise ValueError if a value would not come back from JSON unchanged.

    Parameters
    ----------
    value, name
        The value and what it is called, such as ``metadata['date']``.
    owner
        What it belongs to.
    """
    if isinstance(value, dict):
        for key, held in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"{owner} cannot be saved as JSON: the key {key!r} of {name} is not a string"
                )
            check_json(held, f"{name}[{key!r}]", owner)
    elif isinstance(value, list):
        for at, held in enumerate(value):
            check_json(held, f"{name}[{at}]", owner)
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(
            f"{owner} cannot be saved as JSON: {name} is {value!r} of type {type(value).__name__}; "
            "give text, numbers, lists or dicts"
        )


def read_files(
    data: Path, manifest: Mapping[str, Any], tokenizer: Tokenizer | None, decode: Coder | None
) -> HybridSnapshot:
    """Read the state that `write_files` wrote.

    Parameters
    ----------
    data
        The folder.
    manifest
        Says what the index is.
    tokenizer
        The tokenizer of the index, if it is a custom one.
    decode
        The inverse of `encode` for sources; what it raises comes through.

    Raises
    ------
    CorruptIndexError
        If a file does not hold what the manifest and the other files say.
    """
    dense = _read_dense(data, manifest)
    sparse = _read_sparse(data, manifest, _read_vocabulary(data / TERMS, tokenizer), dense.size)
    state = HybridSnapshot(dense=dense, sparse=sparse)
    return state.holding(sparse, [*_read_passages(data / PASSAGES, decode)])


def _read_dense(data: Path, manifest: Mapping[str, Any]) -> DenseSnapshot:
    with corrupt_if_unreadable(data.parent):
        metric, kind = manifest["dense"]["metric"], manifest["dense"]["kind"]
    vectors: Vectors = _read_array(data / VECTORS, 2, "float32")
    ann = None
    if ANN in manifest["files"]:
        from shared_core.index.ann import AnnIndex

        with corrupt_if_unreadable(data / ANN):
            ann = AnnIndex.read(data / ANN, kind, vectors)
    return DenseSnapshot(metric, kind, ann=ann).extended(vectors)


def _read_vocabulary(path: Path, tokenizer: Tokenizer | None) -> Vocabulary:
    with corrupt_if_unreadable(path):
        terms = json.loads(path.read_text(encoding="utf-8"))
    return Vocabulary(tokenizer, terms)


def _read_sparse(
    data: Path, manifest: Mapping[str, Any], vocabulary: Vocabulary, size: int
) -> SparseSnapshot:
    with corrupt_if_unreadable(data.parent):
        options = BM25Options(**manifest["bm25"])
    df, lengths = np.zeros(len(vocabulary), np.int64), np.zeros(size, np.int32)
    segments: list[list[npt.NDArray[Any]]] = []
    first = 0
    while _postings_name(len(segments), "terms") in manifest["files"]:
        paths = [data / _postings_name(len(segments), name) for name in POSTINGS]
        arrays = [
            _read_array(*each) for each in zip(paths, [1] * 4, POSTINGS.values(), strict=True)
        ]
        for path, sound in zip(
            paths, _soundness(arrays, len(vocabulary), first, size), strict=True
        ):
            with corrupt_if_unreadable(path):
                if not sound:
                    raise ValueError("its numbers are no postings of this index")
        terms, starts, rows, counts = arrays
        df[terms] += np.diff(starts)
        lengths += np.bincount(rows, counts, size).astype(np.int32)
        first = int(rows.max(initial=first - 1)) + 1
        segments.append(arrays)
    whole = [Segment.of(t, s, rows, c, lengths[rows]) for t, s, rows, c in segments]
    return SparseSnapshot(options, tuple(whole), lengths, df, vocabulary)


def _soundness(
    arrays: list[npt.NDArray[Any]], vocabulary: int, first: int, size: int
) -> Iterator[bool]:
    """Yield for each array of a segment whether it is valid, given those before it.

    The segment's rows must lie in [first, size).
    """
    terms, starts, rows, counts = arrays
    yield _within(terms, 0, vocabulary) and bool((terms[1:] > terms[:-1]).all())
    ends = starts.size == terms.size + 1 and starts[0] == 0 and starts[-1] == rows.size
    yield bool(ends and (starts[1:] > starts[:-1]).all())
    later = rows[1:] > rows[:-1]
    later[starts[1:-1] - 1] = True  # the first row of the next term
    yield _within(rows, first, size) and bool(later.all())
    yield counts.shape == rows.shape and bool(counts.min(initial=1) > 0)


def _within(values: npt.NDArray[Any], first: int, end: int) -> bool:
    return values.size == 0 or bool(first <= values.min() and values.max() < end)


def _read_array(path: Path, dimensions: int, dtypes: str) -> npt.NDArray[Any]:
    with corrupt_if_unreadable(path):
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
        if array.ndim != dimensions or array.dtype.name not in dtypes.split():
            raise ValueError(f"it holds an array of type {array.dtype} and shape {array.shape}")
    return array


def _read_passages(path: Path, decode: Coder | None) -> Iterator[Passage]:
    decode = decode or Undecoded
    with corrupt_if_unreadable(path), path.open(encoding="utf-8") as lines:
        records = [*map(json.loads, lines)]
    for record in records:
        source = record.get("source")
        yield Passage(
            record["id"],
            record["text"],
            record["metadata"],
            decode(source) if source is not None else None,
        )


def check_words(state: HybridSnapshot, folder: Path) -> None:
    """Raise ValueError unless some passages split into the words they were saved with."""
    sparse = state.sparse
    if not state.size:
        return
    for row in (int(sparse.lengths.argmax()), 0, state.size // 2, state.size - 1):
        saved: dict[int, int] = {}
        for segment in sparse.segments:
            at = (segment.rows == row).nonzero()[0]
            saved |= zip(segment.terms_at(at).tolist(), segment.counts[at].tolist(), strict=True)
        if sparse.vocabulary.count(state.passages[row].text) != (saved, sparse.lengths[row]):
            raise ValueError(
                f"the tokenizer does not split passage {state.passages[row].id!r} into the words "
                f"that {folder} was saved with: give the tokenizer that the index was built with "
                "as tokenizer=, or build the index anew"
            )


@contextmanager
def corrupt_if_unreadable(path: Path) -> Iterator[None]:
    """Turn the errors of reading a malformed file into a CorruptIndexError."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise CorruptIndexError(
            f"{path} cannot be read: {error}; restore the folder from a copy, or rebuild the index"
        ) from error
