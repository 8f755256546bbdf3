"""The files of an index: vectors, postings, terms and passages. No pickle."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from shared_core.index.approximate import Approximate, Kind
from shared_core.index.bm25 import BM25Options
from shared_core.index.dense import DenseView
from shared_core.index.lexicon import Lexicon
from shared_core.index.postings import Segment
from shared_core.index.sparse_view import SparseView
from shared_core.index.state import State
from shared_core.index.tokenize import Tokenizer
from shared_core.types import Passage

POSTINGS = ("terms", "starts", "rows", "counts")

Coder = Callable[[Any], Any]


def write_files(data: Path, state: State, lexicon: Lexicon, encode: Coder | None) -> None:
    """Write a state without deleted rows into the folder `data`."""
    sparse, dense = state.sparse, state.dense
    np.save(data / "vectors.npy", dense.vectors)
    np.save(data / "lengths.npy", sparse.lengths)
    np.save(data / "df.npy", sparse.df)
    for position, segment in enumerate(sparse.segments):
        for name in POSTINGS:
            np.save(data / f"postings-{position:02}-{name}.npy", getattr(segment, name))
    if dense.approximate is not None:
        faiss.write_index(dense.approximate.index, str(data / "approximate.faiss"))
    (data / "terms.json").write_text(json.dumps(list(lexicon.ids)), encoding="utf-8")
    with (data / "passages.jsonl").open("w", encoding="utf-8") as lines:
        for passage in state.passages[: state.size]:
            lines.write(_dump(passage, encode) + "\n")


def _dump(passage: Passage, encode: Coder | None) -> str:
    record = {"id": passage.id, "text": passage.text, "metadata": dict(passage.metadata)}
    if encode is not None:
        record["source"] = encode(passage.source)
    owner = f"passage {passage.id!r}"
    try:
        _check_json(record, owner)
    except RecursionError as error:
        raise ValueError(f"{owner} cannot be saved as JSON: it holds itself") from error
    return json.dumps(record)


def _check_json(value: Any, owner: str) -> None:
    """Raise ValueError if `value` would not come back from JSON as it is."""
    if isinstance(value, dict):
        for key, held in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{owner} cannot be saved as JSON: its key {key!r} is not a text")
            _check_json(held, owner)
    elif isinstance(value, list):
        for held in value:
            _check_json(held, owner)
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(
            f"{owner} cannot be saved as JSON: it holds {value!r} of type {type(value).__name__}"
        )


def describe_dense(dense: DenseView) -> dict[str, Any]:
    """Return what the dense leg is besides its vectors, for the manifest."""
    about: dict[str, Any] = {"metric": dense.metric, "kind": dense.kind, "longest": dense.longest}
    if dense.approximate is not None:
        about["approximate"] = {
            "scale": dense.approximate.scale,
            "trained": dense.approximate.trained,
            "margin": dense.approximate.margin,
        }
    return about


def read_state(
    data: Path, dense: Mapping[str, Any], bm25: Mapping[str, Any], decode: Coder | None
) -> State:
    """Read what `write_files` wrote, given what the manifest says of the legs."""
    return State.of(
        _read_dense(data, dense),
        _read_sparse(data, BM25Options(**bm25)),
        list(_read_passages(data, decode)),
    )


def read_lexicon(data: Path, tokenizer: Tokenizer | None) -> Lexicon:
    """Read the vocabulary that `write_files` wrote."""
    lexicon = Lexicon(tokenizer)
    terms = json.loads((data / "terms.json").read_text(encoding="utf-8"))
    lexicon.ids.update((term, number) for number, term in enumerate(terms))
    return lexicon


def _read_passages(data: Path, decode: Coder | None) -> Iterator[Passage]:
    with (data / "passages.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            source = record.get("source")
            yield Passage(
                record["id"],
                record["text"],
                record["metadata"],
                decode(source) if decode is not None and source is not None else None,
            )


def _read_dense(data: Path, about: Mapping[str, Any]) -> DenseView:
    vectors = np.load(data / "vectors.npy", allow_pickle=False)
    view = DenseView(about["metric"], about["kind"], longest=about["longest"])
    approximate = None
    if "approximate" in about:
        index = faiss.read_index(str(data / "approximate.faiss"))
        kind: Kind = "sq8" if about["kind"] == "flat" else about["kind"]
        approximate = Approximate(kind, index, **about["approximate"])
    return view.stored(vectors, approximate) if vectors.shape[1] else view


def _read_sparse(data: Path, options: BM25Options) -> SparseView:
    def read(name: str) -> Any:
        return np.load(data / f"{name}.npy", allow_pickle=False)

    segments: list[Segment] = []
    while (data / f"postings-{len(segments):02}-terms.npy").is_file():
        prefix = f"postings-{len(segments):02}-"
        segments.append(Segment(*(read(prefix + name) for name in POSTINGS)))
    return SparseView(options, tuple(segments), read("lengths"), read("df"))
