"""An index on disk: JSON, ``.npy`` and FAISS files in one folder, no pickle.

::

    folder/
      manifest.json        what the index is, and the checksum of every file
      data-<token>/        the files

The files are written first, into a new data folder. Replacing the manifest is one atomic step and
makes them the index; a crash before it leaves the old index intact.

Locks on the folder make saves wait for each other and for loads. Where there are none (Windows,
some network file systems), the last save wins, a load overtaken by a save starts again, and what a
crash has left behind stays, since it may belong to another save.
"""

from __future__ import annotations

import os
import secrets
import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from shared_core.atomic import in_full
from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.index.persistence.files import (
    Coder,
    check_json,
    describe_dense,
    file_names,
    segments_of,
    write_files,
)
from shared_core.index.persistence.loading import read_state
from shared_core.index.persistence.manifest import (
    DATA,
    MANIFEST,
    check_file,
    read_manifest,
    seal,
    write_manifest,
)
from shared_core.index.state import State
from shared_core.index.tokenize import tokenize
from shared_core.types import Tokenizer

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Loaded:
    """The result of `load_state`."""

    state: State
    extra: dict[str, Any]


def save_state(folder: Path, state: State, encode: Coder | None, extra: dict[str, Any]) -> None:
    """Write a state without deleted rows into `folder`; see `HybridIndex.save`."""
    check_json(extra, "extra")
    if folder.exists() and not folder.is_dir():
        raise IndexFormatError(f"{folder} is a file; give a folder")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder, exclusive=True) as alone:
        _check_target(folder)
        data = folder / f"data-{secrets.token_hex(8)}"
        data.mkdir()
        try:
            with in_full(folder):
                write_files(data, state, encode)
            files = {file.name: seal(file) for file in sorted(data.iterdir())}
            about = _describe(state) | {"extra": extra}
            write_manifest(data / MANIFEST, about | {"data": data.name, "files": files})
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        replaced = _current(folder)
        (data / MANIFEST).replace(folder / MANIFEST)
        _settle(folder)
        for other in _data_folders(folder):
            if other != data and (alone or other.name == replaced):
                shutil.rmtree(other, ignore_errors=True)


def _describe(state: State) -> dict[str, Any]:
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"numpy": np.__version__, "faiss": faiss.__version__},
        "passages": state.size,
        "dim": state.dense.dim,
        "tokenizer": _name_of(state.sparse.lexicon.tokenizer),
        "dense": describe_dense(state.dense),
        "bm25": asdict(state.sparse.options),
    }


def load_state(folder: Path, tokenizer: Tokenizer | None, decode: Coder | None) -> Loaded:
    """Read what `save_state` wrote; see `HybridIndex.load`."""
    try:
        return _load(folder, tokenizer, decode)
    except CorruptIndexError as error:
        way_out = "restore the folder from a copy, or rebuild the index"
        raise CorruptIndexError(f"{error}; {way_out}") from error


def _load(folder: Path, tokenizer: Tokenizer | None, decode: Coder | None) -> Loaded:
    path = folder / MANIFEST
    if not path.is_file():
        what = f"it has no {MANIFEST}" if folder.is_dir() else "there is no such folder"
        what = "it is a file" if folder.is_file() else what
        raise IndexFormatError(f"{folder} is not an index: {what}")
    with _locked(folder, exclusive=False):
        while True:
            manifest = read_manifest(path)
            _check_tokenizer(folder, manifest["tokenizer"], tokenizer)
            try:
                return Loaded(_read(folder, manifest, tokenizer, decode), manifest["extra"])
            except (CorruptIndexError, OSError):
                if _current(folder) in (manifest["data"], None):
                    raise


def _read(
    folder: Path, manifest: Mapping[str, Any], tokenizer: Tokenizer | None, decode: Coder | None
) -> State:
    approximate = "approximate" in manifest["dense"]
    segments = segments_of(manifest["files"])
    if manifest["files"].keys() != file_names(segments, approximate=approximate):
        raise CorruptIndexError(f"{folder / MANIFEST} does not name the files of an index")
    data = folder / manifest["data"]
    for name, sealed in manifest["files"].items():
        check_file(data / name, sealed)
    return read_state(data, manifest, tokenizer, decode)


def _check_tokenizer(folder: Path, built_with: str, given: Tokenizer | None) -> None:
    default, name = _name_of(tokenize), _name_of(tokenize if given is None else given)
    if built_with == name:
        return
    if built_with == default:
        raise ValueError(
            f"{folder} was built with the default tokenizer, not with {name}; give no tokenizer="
        )
    if name == default:
        raise ValueError(
            f"{folder} was built with the tokenizer {built_with}; give it as tokenizer="
        )
    warnings.warn(
        f"{folder} was built with the tokenizer {built_with} and is loaded with {name}; "
        "both must split text alike",
        stacklevel=5,  # the caller of `HybridIndex.load`
    )


@contextmanager
def _locked(folder: Path, *, exclusive: bool) -> Iterator[bool]:
    """Lock a folder against other saves, or while loading against any; yield whether it worked."""
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        locked = False
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            locked = True
        yield locked
    finally:
        os.close(descriptor)


def _settle(folder: Path) -> None:
    """Flush the list of the folder's files to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _current(folder: Path) -> str | None:
    """Return the current data folder of the index, if there is one."""
    with suppress(OSError, IndexFormatError):
        return str(read_manifest(folder / MANIFEST)["data"])
    return None


def _data_folders(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if DATA.fullmatch(entry.name)]


def _check_target(folder: Path) -> None:
    """Refuse to write into a folder that holds anything but an index."""
    entries = [entry.name for entry in folder.iterdir()]  # once: another save may end soon
    ours = [name for name in entries if DATA.fullmatch(name)]
    if (folder / MANIFEST).is_file():
        try:
            read_manifest(folder / MANIFEST)
        except IndexFormatError as error:
            if ours and isinstance(error, CorruptIndexError):
                return
            raise IndexFormatError(f"{error}; give a new or empty folder") from error
        return
    foreign = [name for name in entries if name not in ours]
    if foreign:
        raise IndexFormatError(
            f"{folder} is not empty and not an index (it holds {foreign[0]!r}); "
            "give a new or empty folder"
        )


def _name_of(tokenizer: Tokenizer) -> str:
    name = getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__)
    return f"{getattr(tokenizer, '__module__', '?')}.{name}"
