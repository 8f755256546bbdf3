"""A fitted gate on disk: one ``.npz`` file of plain arrays and a manifest in JSON, no pickle.

The file is written beside its place and then renamed, so that a crash leaves the old one whole;
a digest over everything tells a damaged file.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.gating.background import Background
from shared_core.gating.fitted import Fitted
from shared_core.gating.policies import Policy

KIND = "posrag-vector-candidates"
FORMAT = 1

Arrays = Mapping[str, npt.NDArray[Any]]


_OF_BACKGROUND = ("questions", "similarities", "contexts", "left_out")


def write_gate(path: Path, fitted: Fitted, policy: Policy, threshold: float) -> None:
    """Write a fitted gate; see `VectorCandidates.save`."""
    arrays: dict[str, npt.NDArray[Any]] = {
        "owners": fitted.owners,
        "similarities": fitted.similarities,
        "numbers": np.fromiter(fitted.numbers.values(), np.intp, len(fitted.numbers)),
    }
    if fitted.background is not None:
        for name in _OF_BACKGROUND:
            arrays[f"background_{name}"] = getattr(fitted.background, name)
    about = {
        "policy": policy,
        "threshold": threshold,
        "everyday": fitted.everyday,
        "following": fitted.following,
        "dim": fitted.dim,
        "ids": list(fitted.numbers),
    }
    _write(path, about, arrays)


def read_gate(path: Path) -> tuple[Fitted, Policy, float]:
    """Read a fitted gate, its policy and its threshold; see `VectorCandidates.load`."""
    about, arrays = _read(path)
    background = None
    if "background_questions" in arrays:
        background = Background(*(arrays[f"background_{name}"] for name in _OF_BACKGROUND))
    fitted = Fitted(
        background,
        about["everyday"],
        dict(zip(about["ids"], arrays["numbers"].tolist(), strict=True)),
        about["following"],
        arrays["owners"],
        arrays["similarities"],
        about["dim"],
    )
    return fitted, about["policy"], about["threshold"]


def _write(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a manifest and arrays into one file, atomically."""
    signed = {"kind": KIND, "format": FORMAT, **about}
    manifest = json.dumps(signed | {"digest": _digest(signed, arrays)})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with partial.open("wb") as file:
            encoded = np.frombuffer(manifest.encode(), np.uint8)
            np.savez(file, allow_pickle=False, manifest=encoded, **arrays)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `_write` wrote.

    Raises
    ------
    IndexFormatError
        If it is another kind of file, or of a format this version cannot read.
    CorruptIndexError
        If it is not what was written.
    """
    if not path.is_file():
        raise IndexFormatError(f"{path} is not a saved gate: there is no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("manifest").tobytes())
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, OSError, AttributeError) as error:
        raise CorruptIndexError(f"{path} cannot be read as a saved gate: {error}") from error
    if not isinstance(about, dict) or about.get("kind") != KIND:
        raise IndexFormatError(f"{path} does not hold a saved gate")
    if about.get("format") != FORMAT:
        raise IndexFormatError(
            f"{path} has format {about.get('format')}, this version reads format {FORMAT}"
        )
    digest = about.pop("digest", None)
    if digest != _digest(about, arrays):
        raise CorruptIndexError(f"{path} is not what was saved: its digest differs")
    return about, arrays


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
