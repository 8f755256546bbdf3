"""The files of an index: vectors, postings, terms and passages. No pickle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from shared_core.index.dense.view import DenseView
from shared_core.index.state import State
from shared_core.types import Passage

VECTORS, LENGTHS, DF = "vectors.npy", "lengths.npy", "df.npy"
APPROXIMATE, TERMS, PASSAGES = "approximate.faiss", "terms.json", "passages.jsonl"

POSTINGS = ("terms", "starts", "rows", "counts")
"""Arrays of a segment; each has its own file."""

Coder = Callable[[Any], Any]

_SPLIT = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""The halves of a UTF-16 pair as two characters, which JSON would join into one."""


def write_files(data: Path, state: State, encode: Coder | None) -> None:
    """Write a state without deleted rows into the folder `data`, while later ones may be made."""
    sparse, dense = state.sparse, state.dense
    words = list(sparse.lexicon.ids)[: sparse.df.size]  # others may be learning more
    np.save(data / VECTORS, dense.vectors)
    np.save(data / LENGTHS, sparse.lengths)
    np.save(data / DF, sparse.df)
    for number, segment in enumerate(sparse.segments):
        for name in POSTINGS:
            np.save(data / postings_name(number, name), getattr(segment, name))
    if dense.approximate is not None:
        faiss.write_index(dense.approximate.index, str(data / APPROXIMATE))
    (data / TERMS).write_text(json.dumps(words), encoding="utf-8")
    with (data / PASSAGES).open("w", encoding="utf-8") as lines:
        for passage in state.passages[: state.size]:
            lines.write(_dump(passage, encode) + "\n")


def postings_name(number: int, name: str) -> str:
    """Return the name of the file with one of the `POSTINGS` of a segment."""
    return f"postings-{number:02}-{name}.npy"


def segments_of(names: Iterable[str]) -> int:
    """Return how many segments have files among these names."""
    return sum(name.endswith("-terms.npy") for name in names)


def file_names(segments: int, *, approximate: bool) -> set[str]:
    """Return the names of all files of an index with this many segments."""
    names = {VECTORS, LENGTHS, DF, TERMS, PASSAGES}
    names |= {postings_name(number, name) for number in range(segments) for name in POSTINGS}
    return names | {APPROXIMATE} if approximate else names


def _dump(passage: Passage, encode: Coder | None) -> str:
    record = {"id": passage.id, "text": passage.text, "metadata": dict(passage.metadata)}
    if encode is not None:
        record["source"] = encode(passage.source)
    check_json(record, f"passage {passage.id!r}")
    return json.dumps(record)


def check_json(value: Any, owner: str) -> None:
    """Raise ValueError, naming the `owner`, if `value` would not come back from JSON unchanged."""
    try:
        _check_json(value, owner)
    except RecursionError as error:
        raise ValueError(f"{owner} cannot be saved as JSON: it contains itself") from error


def _check_json(value: Any, owner: str) -> None:
    if isinstance(value, dict):
        for key, held in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"{owner} cannot be saved as JSON: its key {key!r} is not a string"
                )
            _check_json(key, owner)
            _check_json(held, owner)
    elif isinstance(value, list):
        for held in value:
            _check_json(held, owner)
    elif isinstance(value, str):
        if not value.isascii() and (split := _SPLIT.search(value)):
            raise ValueError(
                f"{owner} cannot be saved as JSON: it holds {split[0]!r}, one character in halves; "
                "join them: text.encode('utf-16', 'surrogatepass').decode('utf-16')"
            )
    elif value is not None and not isinstance(value, int | float):
        raise ValueError(
            f"{owner} cannot be saved as JSON: it holds {value!r} of type {type(value).__name__}"
        )


def describe_dense(dense: DenseView) -> dict[str, Any]:
    """Return the description of the dense leg, without its vectors, for the manifest."""
    about: dict[str, Any] = {"metric": dense.metric, "kind": dense.kind, "longest": dense.longest}
    if dense.approximate is not None:
        about["approximate"] = {
            "scale": dense.approximate.scale,
            "trained": dense.approximate.trained,
            "margin": dense.approximate.margin,
        }
    return about
