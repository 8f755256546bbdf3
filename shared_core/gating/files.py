"""A fitted gate on disk: one ``.npz`` file of plain arrays and a JSON manifest, no pickle.

A digest of the contents reveals a damaged file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.atomic import replacing
from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.gating.background import Background
from shared_core.gating.coverage import WordCoverage, plain_words
from shared_core.gating.everyday import EVERYDAY_QUESTIONS
from shared_core.gating.fit_state import FitState
from shared_core.gating.foreign_questions import KnownText
from shared_core.gating.policies import Policy
from shared_core.types import Tokenizer

KIND = "posrag-vector-candidates"

FORMAT = 2
"""Format 1 had no words, and its known text could only be the first everyday question."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

Fit: TypeAlias = tuple[FitState, Policy, float]
"""State of the fit, policy and threshold."""

_OF_BACKGROUND = ("questions", "similarities", "contexts", "left_out")

_WAY_OUT = "restore the file from a copy, or fit the gate again"

_STRAY = "allow_pickle"
"""Array that earlier versions wrote with NumPy before 2.2; it is not part of the digest."""


def write_gate(
    path: Path,
    fitted: FitState,
    policy: Policy,
    threshold: float,
    coverage: WordCoverage | None = None,
    *,
    transformed: bool = False,
) -> None:
    """Write a fitted gate, and whether it has a transform; see `ContextGate.save`."""
    for id in fitted.numbers:
        if not isinstance(id, str | int):  # JSON would make another object of it, or fail
            raise ValueError(f"ids must be strings to be saved, got {id!r:.80}")
    arrays: dict[str, npt.NDArray[Any]] = {
        "owners": fitted.owners,
        "similarities": fitted.similarities,
        "numbers": np.fromiter(fitted.numbers.values(), np.intp, len(fitted.numbers)),
    }
    if fitted.background is not None:
        for name in _OF_BACKGROUND:
            arrays[f"background_{name}"] = getattr(fitted.background, name)
    if fitted.known is not None:
        arrays["known"] = fitted.known.vector
    about: dict[str, Any] = {
        "policy": policy,
        "threshold": threshold,
        "known": None if fitted.known is None else fitted.known.text,
        "following": fitted.following,
        "dim": fitted.dim,
        "ids": list(fitted.numbers),
        "coverage": None,
        "transformed": transformed,
    }
    if coverage is not None:
        counts = coverage.counts
        arrays["counts"] = np.fromiter(counts.values(), np.int64, len(counts))
        about["coverage"] = {
            "passages": len(coverage),
            "own_split": coverage.tokenizer is not plain_words,
            "words": list(counts),
        }
    _write(path, about, arrays)


def read_gate(
    path: Path, tokenizer: Tokenizer | None, *, transformed: bool
) -> tuple[Fit, WordCoverage | None]:
    """Read a fit and its word counts, if any; see `ContextGate.load`."""
    about, arrays = _read(path)
    if about.get("transformed") and not transformed:  # earlier versions did not write it
        raise ValueError(f"{path} is of a gate that transforms queries: give transform=")
    saved = about.get("coverage")
    custom = saved is not None and saved["own_split"]
    if custom and tokenizer is None:
        raise ValueError(f"{path} counts words of a custom tokenizer: give it as tokenizer=")
    if tokenizer is not None and not custom:
        raise ValueError(f"{path} has no words of a custom tokenizer: leave tokenizer= out")
    coverage = None
    if saved is not None:
        counts = dict(zip(saved["words"], arrays["counts"].tolist(), strict=True))
        coverage = WordCoverage.of(saved["passages"], counts, tokenizer or plain_words)
    return _fit(about, arrays), coverage


def _fit(about: Mapping[str, Any], arrays: Arrays) -> Fit:
    background = None
    if "background_questions" in arrays:
        background = Background(*(arrays[f"background_{name}"] for name in _OF_BACKGROUND))
    fitted = FitState(
        background,
        _known(about, arrays),
        dict(zip(about["ids"], arrays["numbers"].tolist(), strict=True)),
        about["following"],
        arrays["owners"],
        arrays["similarities"],
        about["dim"],
    )
    return fitted, about["policy"], about["threshold"]


def _known(about: Mapping[str, Any], arrays: Arrays) -> KnownText | None:
    if about["format"] == 1:
        if not about["everyday"]:
            return None
        return KnownText(EVERYDAY_QUESTIONS[0], arrays["background_questions"][0])
    return None if about["known"] is None else KnownText(about["known"], arrays["known"])


def _write(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a manifest and arrays into one file, atomically."""
    signed = {"kind": KIND, "format": FORMAT, **about}
    manifest = json.dumps(signed | {"digest": _digest(signed, arrays)})
    members: dict[str, Any] = {"manifest": np.frombuffer(manifest.encode(), np.uint8), **arrays}
    with replacing(path) as file:
        np.savez(file, **members)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `_write` wrote.

    Raises
    ------
    IndexFormatError
        If it is another kind of file, or of a format this version cannot read.
    CorruptIndexError
        If it has changed since it was written.
    """
    if path.is_dir():
        raise IndexFormatError(f"{path} is not a saved gate: it is a folder; name the file in it")
    if not path.is_file():
        raise IndexFormatError(f"{path} is not a saved gate: there is no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != _STRAY}
        about = json.loads(arrays.pop("manifest").tobytes())
    except Exception as error:  # a damaged archive or header may raise anything
        raise CorruptIndexError(
            f"{path} cannot be read as a saved gate: {error}; {_WAY_OUT}"
        ) from error
    if not isinstance(about, dict) or about.get("kind") != KIND:
        raise IndexFormatError(f"{path} does not hold a saved gate")
    if about.get("format") not in (1, FORMAT):
        raise IndexFormatError(
            f"{path} has format {about.get('format')}, this version reads formats 1 and {FORMAT}"
        )
    digest = about.pop("digest", None)
    if digest != _digest(about, arrays):
        raise CorruptIndexError(f"{path} is not what was saved: its digest differs; {_WAY_OUT}")
    return about, arrays


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
