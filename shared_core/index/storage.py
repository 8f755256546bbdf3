"""An index on disk: JSON, ``.npy`` and FAISS files in one folder, no pickle.

::

    folder/
      manifest.json        what the index is, and the checksum of every file and of itself
      data-<token>/        the files

The files are written first, into a new data folder. Replacing the manifest is one atomic step and
makes them the index; a crash before it leaves the old index intact.

Locks on the folder make saves wait for each other and for loads. Where there are none (Windows,
some network file systems), the last save wins, a load overtaken by a save starts again, and what a
crash has left behind stays, since it may belong to another save.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.files import in_full
from shared_core.index.snapshot import HybridSnapshot
from shared_core.index.storage_files import (
    Coder,
    check_json,
    check_words,
    corrupt_if_unreadable,
    read_files,
    write_files,
)
from shared_core.index.tokenize import tokenize
from shared_core.types import Tokenizer

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

KIND = "posrag-hybrid-index"
FORMAT = 2
MANIFEST = "manifest.json"
DEFAULT = "default"

DATA = re.compile("data-[0-9a-f]{16}")
"""Names of data folders. No other is read: it could lead anywhere."""


def save_state(
    folder: Path, state: HybridSnapshot, encode: Coder | None, extra: dict[str, Any]
) -> None:
    """Write a state without deleted rows into `folder`; see `HybridIndex.save`."""
    check_json(extra, "extra", "extra")
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
            files = {file.name: fsync_and_hash(file) for file in sorted(data.iterdir())}
            manifest = {
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "versions": {"numpy": np.__version__},
                "passages": state.size,
                "tokenizer": _name_of(state.sparse.vocabulary.tokenizer),
                "dense": {"metric": state.dense.metric, "kind": state.dense.kind},
                "bm25": asdict(state.sparse.options),
                "extra": extra,
                "data": data.name,
                "files": files,
            }
            write_manifest(data / MANIFEST, manifest)
        except BaseException:
            shutil.rmtree(data, ignore_errors=True)
            raise
        replaced = _current(folder)
        (data / MANIFEST).replace(folder / MANIFEST)
        _settle(folder)
        for other in folder.iterdir():
            if DATA.fullmatch(other.name) and other != data and (alone or other.name == replaced):
                shutil.rmtree(other, ignore_errors=True)


def load_state(
    folder: Path, tokenizer: Tokenizer | None, decode: Coder | None
) -> tuple[HybridSnapshot, dict[str, Any]]:
    """Return the state that `save_state` wrote, and `extra`; see `HybridIndex.load`."""
    if not (folder / MANIFEST).is_file():
        raise IndexFormatError(
            f"{folder} is not an index: there is no {MANIFEST} in it; give the folder of a save"
        )
    with _locked(folder, exclusive=False):
        while True:
            manifest = read_manifest(folder / MANIFEST)
            _check_tokenizer(folder, manifest["tokenizer"], tokenizer)
            data = folder / manifest["data"]
            try:
                for name, checksum in manifest["files"].items():
                    check_file(data / name, checksum)
                state = read_files(data, manifest, tokenizer, decode)
            except (CorruptIndexError, OSError):
                if _current(folder) in (manifest["data"], None):
                    raise
            else:
                check_words(state, folder)
                return state, manifest["extra"]


def _check_tokenizer(folder: Path, built_with: str, given: Tokenizer | None) -> None:
    name = _name_of(tokenize if given is None else given)
    if (name == DEFAULT) != (built_with == DEFAULT):
        raise ValueError(
            f"{folder} was built with the {built_with} tokenizer, not with the {name} one; "
            "give the one it was built with as tokenizer=, or none for the default"
        )


def _name_of(tokenizer: Tokenizer) -> str:
    if tokenizer is tokenize:
        return DEFAULT
    return str(getattr(tokenizer, "__qualname__", type(tokenizer).__qualname__))


def write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    """Write a manifest of `values` with its checksum, and flush it to disk."""
    signed = _signed({"kind": KIND, "format": FORMAT, **values})
    with path.open("w", encoding="utf-8") as file:
        json.dump(signed, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest.

    Raises
    ------
    IndexFormatError
        If it is not that of an index, or has a format this version cannot read.
    CorruptIndexError
        If it has been altered.
    """
    with corrupt_if_unreadable(path):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
            raise IndexFormatError(f"{path} does not describe a posrag index")
        if manifest.get("format") != FORMAT:
            raise IndexFormatError(
                f"{path} has format {manifest.get('format')}, this version reads format {FORMAT}: "
                "build the index anew from its documents and save it into a new folder"
            )
        if manifest != _signed(manifest):
            raise ValueError("it is not what was saved: its checksum differs")
        if not DATA.fullmatch(manifest["data"]):
            raise ValueError(f"{manifest['data']!r} is not the name of a data folder")
        return manifest


def _signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with the checksum of its other values."""
    values = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(values, sort_keys=True)
    return values | {"checksum": hashlib.sha256(text.encode()).hexdigest()}


def fsync_and_hash(path: Path) -> str:
    """Flush a file to disk, and return its checksum."""
    with path.open("r+b") as file:  # Windows flushes only what can be written to
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: Path, checksum: str) -> None:
    """Raise CorruptIndexError if a file is missing, or not the one with this checksum."""
    with corrupt_if_unreadable(path):
        if not path.is_file():
            raise ValueError("it is missing")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                raise ValueError("it is not what was saved: its checksum differs")


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


def _check_target(folder: Path) -> None:
    """Refuse to write into a folder that holds anything but an index."""
    entries = [entry.name for entry in folder.iterdir()]  # once: another save may end soon
    foreign = [name for name in entries if not DATA.fullmatch(name)]
    if (folder / MANIFEST).is_file():
        try:
            read_manifest(folder / MANIFEST)
        except IndexFormatError as error:
            if len(foreign) < len(entries) and isinstance(error, CorruptIndexError):
                return
            raise IndexFormatError(f"{error}; give a new or empty folder") from error
    elif foreign:
        raise IndexFormatError(
            f"{folder} is not empty and not an index (it holds {foreign[0]!r}); "
            "give a new or empty folder"
        )
