"""A fitted gate on disk: one ``.npz`` file of plain arrays and a manifest in JSON, no pickle.

A digest over everything tells a damaged file.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
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
from shared_core.gating.fitted import Fitted
from shared_core.gating.foreign import Known
from shared_core.gating.policies import Policy
from shared_core.types import Tokenizer

KIND = "posrag-vector-candidates"

FORMAT = 2
"""Format 1 kept no words, and of the known text only whether it is an everyday question."""

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

Fit: TypeAlias = tuple[Fitted, Policy, float]
"""What was fitted, policy and threshold."""

_OF_BACKGROUND = ("questions", "similarities", "contexts", "left_out")

_WAY_OUT = "restore the file from a copy, or fit the gate anew"

_STRAY = "allow_pickle"
"""An array that earlier versions wrote with numpy before 2.2, and did not count in the digest."""


def write_gate(
    path: Path,
    fitted: Fitted,
    policy: Policy,
    threshold: float,
    coverage: WordCoverage | None = None,
) -> None:
    """Write a fitted gate; see `ContextGate.save`."""
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


def read_gate(path: Path, tokenizer: Tokenizer | None) -> tuple[Fit, WordCoverage | None]:
    """Read a fit and the words that count beside it; see `ContextGate.load`."""
    about, arrays = _read(path)
    saved = about.get("coverage")
    own = saved is not None and saved["own_split"]
    if own and tokenizer is None:
        raise ValueError(f"{path} counts words of a tokeniser of your own: give it as tokenizer=")
    if tokenizer is not None and not own:
        raise ValueError(f"{path} holds no words of a tokeniser of your own: leave tokenizer= out")
    coverage = None
    if saved is not None:
        counts = dict(zip(saved["words"], arrays["counts"].tolist(), strict=True))
        coverage = WordCoverage.of(saved["passages"], counts, tokenizer or plain_words)
    return _fit(about, arrays), coverage


def _fit(about: Mapping[str, Any], arrays: Arrays) -> Fit:
    background = None
    if "background_questions" in arrays:
        background = Background(*(arrays[f"background_{name}"] for name in _OF_BACKGROUND))
    fitted = Fitted(
        background,
        _known(about, arrays),
        dict(zip(about["ids"], arrays["numbers"].tolist(), strict=True)),
        about["following"],
        arrays["owners"],
        arrays["similarities"],
        about["dim"],
    )
    return fitted, about["policy"], about["threshold"]


def _known(about: Mapping[str, Any], arrays: Arrays) -> Known | None:
    if about["format"] == 1:
        if not about["everyday"]:
            return None
        return Known(EVERYDAY_QUESTIONS[0], arrays["background_questions"][0])
    return None if about["known"] is None else Known(about["known"], arrays["known"])


def _write(path: Path, about: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a manifest and arrays into one file, whole or not at all."""
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
        If it is not what was written.
    """
    if path.is_dir():
        raise IndexFormatError(f"{path} is not a saved gate: it is a folder; name the file in it")
    if not path.is_file():
        raise IndexFormatError(f"{path} is not a saved gate: there is no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != _STRAY}
        about = json.loads(arrays.pop("manifest").tobytes())
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, OSError, AttributeError) as error:
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
