"""The manifest of an index: what it is, and the checksum of every file and of itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared_core.errors import CorruptIndexError, IndexFormatError

KIND = "posrag-hybrid-index"
FORMAT = 1
MANIFEST = "manifest.json"


def write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    """Write a manifest of `values`, signed, down to the disk."""
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
        If it is not that of an index, or of a format this version cannot read.
    CorruptIndexError
        If it is not what was written.
    """
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


def seal(path: Path) -> dict[str, Any]:
    """Have a file written down to the disk, and return its size and checksum."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return {"bytes": path.stat().st_size, "sha256": _digest(path)}


def check_file(path: Path, sealed: Mapping[str, Any]) -> None:
    """Raise CorruptIndexError if a file is not the one that was sealed."""
    if not path.is_file():
        raise CorruptIndexError(f"{path} is missing")
    size = path.stat().st_size
    if size != sealed["bytes"]:
        raise CorruptIndexError(f"{path} has {size} bytes, it was saved with {sealed['bytes']}")
    if _digest(path) != sealed["sha256"]:
        raise CorruptIndexError(f"{path} is not what was saved: its checksum differs")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
