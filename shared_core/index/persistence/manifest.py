"""The manifest of an index: what it is, and the checksum of every file and of itself."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared_core.errors import CorruptIndexError, IndexFormatError

KIND = "posrag-hybrid-index"
FORMAT = 1
MANIFEST = "manifest.json"

DATA = re.compile("data-[0-9a-f]{16}")
"""Names of data folders. No other is read: it could lead anywhere."""

_FORM = {
    "data": str,
    "files": dict,
    "passages": int,
    "dim": int | None,
    "tokenizer": str,
    "dense": dict,
    "bm25": dict,
    "extra": dict,
}
"""The keys of a manifest, and the types of their values."""

_MOST = 2**31 - 1
"""Most rows, and dimensions, that the legs can count."""


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
                f"{path} has format {manifest.get('format')}, this version reads format {FORMAT}"
            )
        if manifest != _signed(manifest):
            raise CorruptIndexError(f"{path} is not what was saved: its checksum differs")
        _check_form(manifest)
        return manifest


def _check_form(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError if a manifest is malformed, even if its checksum is right."""
    for key, form in _FORM.items():
        if key not in manifest or not isinstance(manifest[key], form):
            raise ValueError(f"its {key!r} is missing or of another type")
    if not DATA.fullmatch(manifest["data"]):
        raise ValueError(f"{manifest['data']!r} is not the name of a data folder")
    for name, sealed in manifest["files"].items():
        if not isinstance(sealed, dict):
            raise ValueError(f"the file {name!r} has no checksum")
    rows, dim = manifest["passages"], manifest["dim"]
    # An index that never held a passage has no dimension.
    if not (rows == 0 if dim is None else 0 <= rows <= _MOST and 1 <= dim <= _MOST):
        raise ValueError(f"{rows} passages with vectors of dimension {dim} are not an index")


@contextmanager
def corrupt_if_unreadable(path: Path) -> Iterator[None]:
    """Turn the errors of reading a malformed file into a CorruptIndexError."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as error:  # JSON too deep, FAISS: RuntimeError
        raise CorruptIndexError(f"{path} cannot be read: {error}") from error


def _signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with the checksum of its other values."""
    values = {key: value for key, value in manifest.items() if key != "checksum"}
    text = json.dumps(values, sort_keys=True)
    return values | {"checksum": hashlib.sha256(text.encode()).hexdigest()}


def seal(path: Path) -> dict[str, Any]:
    """Flush a file to disk, and return its size and checksum."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "sha256": _digest(path)}


def check_file(path: Path, sealed: Mapping[str, Any]) -> None:
    """Raise CorruptIndexError if a file is not the one that was sealed."""
    if not path.is_file():
        raise CorruptIndexError(f"{path} is missing")
    size = path.stat().st_size
    if size != sealed.get("bytes"):
        raise CorruptIndexError(f"{path} has {size} bytes, it was saved with {sealed.get('bytes')}")
    if _digest(path) != sealed.get("sha256"):
        raise CorruptIndexError(f"{path} is not what was saved: its checksum differs")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
