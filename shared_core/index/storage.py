"""An index on disk: JSON, ``.npy`` and FAISS files in one folder, no pickle.

::

    folder/
      manifest.json        format, versions, options, and the checksum of every file
      data-<token>/        the files

The files are written first, into a data folder of their own; replacing the manifest is one
atomic step and what makes them the index. A crash before it leaves the old index whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import faiss
import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.index.approximate import Approximate
from shared_core.index.bm25 import BM25Options
from shared_core.index.dense import DenseView
from shared_core.index.lexicon import Lexicon
from shared_core.index.postings import Segment
from shared_core.index.sparse_view import SparseView
from shared_core.index.state import State
from shared_core.index.tokenize import Tokenizer, tokenize
from shared_core.types import Passage

KIND = "posrag-hybrid-index"
FORMAT = 1
MANIFEST = "manifest.json"
_DATA = re.compile("data-[0-9a-f]{16}")
POSTINGS = ("terms", "starts", "rows", "counts")

Coder = Callable[[Any], Any]


@dataclass(frozen=True)
class Loaded:
    """What `load_state` found."""

    state: State
    lexicon: Lexicon
    extra: dict[str, Any]


def save_state(
    folder: Path, state: State, lexicon: Lexicon, encode: Coder | None, extra: Mapping[str, Any]
) -> None:
    """Write a state without deleted rows into `folder`; see `HybridIndex.save`."""
    try:
        json.dumps(extra)
    except (TypeError, ValueError) as error:
        raise ValueError(f"extra cannot be saved as JSON: {error}") from error
    if folder.exists() and not folder.is_dir():
        raise IndexFormatError(f"{folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, exclusive=True):
        _check_target(folder)
        data = folder / f"data-{secrets.token_hex(8)}"
        data.mkdir()
        try:
            _write_files(data, state, lexicon, encode)
            files = {file.name: _sealed(file) for file in sorted(data.iterdir())}
            manifest = _describe(state, lexicon) | {"extra": dict(extra), "data": data.name}
            _write_json(data / MANIFEST, _signed(manifest | {"files": files}))
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        (data / MANIFEST).replace(folder / MANIFEST)
        _settle(folder)
        for other in _data_folders(folder):
            if other != data:
                shutil.rmtree(other, ignore_errors=True)


def _describe(state: State, lexicon: Lexicon) -> dict[str, Any]:
    return {
        "kind": KIND,
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"numpy": np.__version__, "faiss": faiss.__version__},
        "passages": state.size,
        "dim": state.dense.dim,
        "tokenizer": _name_of(lexicon.tokenizer),
        "dense": _describe_dense(state.dense),
        "bm25": asdict(state.sparse.options),
    }


def load_state(folder: Path, tokenizer: Tokenizer | None, decode: Coder | None) -> Loaded:
    """Read what `save_state` wrote; see `HybridIndex.load`."""
    if not (folder / MANIFEST).is_file():
        raise IndexFormatError(f"{folder} is not an index: it has no {MANIFEST}")
    with _locked(folder, exclusive=False):
        manifest = _read_manifest(folder / MANIFEST)
        _check_tokenizer(folder, manifest["tokenizer"], tokenizer)
        data = folder / manifest["data"]
        for name, sealed in manifest["files"].items():
            _check_file(data / name, sealed)
        lexicon = Lexicon(tokenizer)
        terms = json.loads((data / "terms.json").read_text(encoding="utf-8"))
        lexicon.ids.update((term, number) for number, term in enumerate(terms))
        state = State.of(
            _read_dense(data, manifest["dense"]),
            _read_sparse(data, BM25Options(**manifest["bm25"])),
            list(_read_passages(data, decode)),
        )
        return Loaded(state, lexicon, manifest["extra"])


def _check_tokenizer(folder: Path, built_with: str, given: Tokenizer | None) -> None:
    default, name = _name_of(tokenize), _name_of(tokenize if given is None else given)
    if built_with == name:
        return
    if built_with == default:
        raise ValueError(f"{folder} was built with the default tokenizer, not with {name}")
    if name == default:
        raise ValueError(
            f"{folder} was built with the tokenizer {built_with}; give it as tokenizer="
        )
    warnings.warn(
        f"{folder} was built with the tokenizer {built_with} and is loaded with {name}; "
        "they must split alike",
        stacklevel=4,
    )


@contextmanager
def _locked(folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Keep other savers out, and savers out while one loads, where the system can."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _settle(folder: Path) -> None:
    """Have the system write down which files the folder holds, where it can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _data_folders(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if _DATA.fullmatch(entry.name)]


def _check_target(folder: Path) -> None:
    """Refuse to write where other things than an index are."""
    ours = _data_folders(folder)
    if (folder / MANIFEST).is_file():
        try:
            _read_manifest(folder / MANIFEST)
        except CorruptIndexError:
            if ours:
                return
            raise
        except IndexFormatError as error:
            raise IndexFormatError(f"{error}; give a new or empty folder") from error
        return
    foreign = [entry.name for entry in folder.iterdir() if entry not in ours]
    if foreign:
        raise IndexFormatError(
            f"{folder} is not empty and not an index (it holds {foreign[0]!r}); "
            "give a new or empty folder"
        )


def _write_files(data: Path, state: State, lexicon: Lexicon, encode: Coder | None) -> None:
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


def _describe_dense(dense: DenseView) -> dict[str, Any]:
    about: dict[str, Any] = {"metric": dense.metric, "kind": dense.kind, "longest": dense.longest}
    if dense.approximate is not None:
        about["approximate"] = {
            "scale": dense.approximate.scale,
            "trained": dense.approximate.trained,
        }
    return about


def _read_dense(data: Path, about: Mapping[str, Any]) -> DenseView:
    vectors = np.load(data / "vectors.npy", allow_pickle=False)
    view = DenseView(about["metric"], about["kind"], longest=about["longest"])
    approximate = None
    if "approximate" in about:
        index = faiss.read_index(str(data / "approximate.faiss"))
        approximate = Approximate(about["kind"], index, **about["approximate"])
    return view.stored(vectors, approximate) if vectors.shape[1] else view


def _read_sparse(data: Path, options: BM25Options) -> SparseView:
    def read(name: str) -> Any:
        return np.load(data / f"{name}.npy", allow_pickle=False)

    segments: list[Segment] = []
    while (data / f"postings-{len(segments):02}-terms.npy").is_file():
        prefix = f"postings-{len(segments):02}-"
        segments.append(Segment(*(read(prefix + name) for name in POSTINGS)))
    return SparseView(options, tuple(segments), read("lengths"), read("df"))


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptIndexError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise IndexFormatError(f"{path} does not describe a posrag index")
    if manifest.get("format") != FORMAT:
        raise IndexFormatError(
            f"{path} has format {manifest.get('format')}, this version reads format {FORMAT}"
        )
    if manifest != _signed(manifest):
        raise CorruptIndexError(f"{path} is not what was saved: its checksum differs")
    return manifest


def _signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with the checksum of its other values."""
    values = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(values, sort_keys=True)
    return values | {"checksum": hashlib.sha256(text.encode()).hexdigest()}


def _check_file(path: Path, sealed: Mapping[str, Any]) -> None:
    if not path.is_file():
        raise CorruptIndexError(f"{path} is missing")
    size = path.stat().st_size
    if size != sealed["bytes"]:
        raise CorruptIndexError(f"{path} has {size} bytes, it was saved with {sealed['bytes']}")
    if _digest(path) != sealed["sha256"]:
        raise CorruptIndexError(f"{path} is not what was saved: its checksum differs")


def _sealed(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "sha256": _digest(path)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def _name_of(tokenizer: Tokenizer) -> str:
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
    return f"{getattr(tokenizer, '__module__', '?')}.{name}"
