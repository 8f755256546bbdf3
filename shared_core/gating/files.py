"""A fitted gate on disk: one ``.npz`` file of plain arrays and a JSON manifest, no pickle.

The archive's own checksums reveal a damaged file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.errors import CorruptIndexError, IndexFormatError
from shared_core.files import replacing
from shared_core.gating.candidates import VectorCandidates
from shared_core.gating.words import WordCoverage, plain_words
from shared_core.types import Tokenizer

KIND = "posrag-vector-candidates"
FORMAT = 6

ARRAYS = ("similarities", "foreign_similarities", "neighbouring", "others", "vector")
"""Arrays of `VectorCandidates`, written under their own names."""


def write_gate(
    path: Path,
    candidates: VectorCandidates,
    coverage: WordCoverage | None,
    *,
    transformed: bool,
) -> None:
    """Write a fitted gate, and whether it has a transform; see `ContextGate.save`."""
    counts = {} if coverage is None else coverage.counts
    about = {
        "kind": KIND,
        "format": FORMAT,
        "policy": candidates.policy,
        "threshold": candidates.threshold,
        "text": candidates.text,
        "transformed": transformed,
        "passages": None if coverage is None else coverage.passages,
        "words": [*counts],
        "own_split": coverage is not None and coverage.tokenizer is not plain_words,
    }
    arrays: dict[str, Any] = {
        "manifest": np.frombuffer(json.dumps(about).encode(), np.uint8),
        **{name: getattr(candidates, name) for name in ARRAYS},
        "counts": np.fromiter(counts.values(), np.int64, len(counts)),
    }
    with replacing(path) as file:
        np.savez(file, **arrays)


def read_gate(
    path: Path, tokenizer: Tokenizer | None, *, transformed: bool
) -> tuple[VectorCandidates, WordCoverage | None]:
    """Read a fit and its word counts, if any; see `ContextGate.load`."""
    about, arrays = _read(path)
    if about["transformed"] and not transformed:
        raise ValueError(f"{path} is of a gate that transforms queries: give transform=")
    if transformed and not about["transformed"]:
        raise ValueError(f"{path} was fitted without a transform: leave transform= out, or refit")
    if about["own_split"] and tokenizer is None:
        raise ValueError(f"{path} counts words of a custom tokenizer: give it as tokenizer=")
    if tokenizer is not None and not about["own_split"]:
        raise ValueError(f"{path} has no words of a custom tokenizer: leave tokenizer= out")
    coverage = None
    if about["passages"] is not None:
        counts = dict(zip(about["words"], arrays["counts"].tolist(), strict=True))
        coverage = WordCoverage(
            passages=about["passages"], counts=counts, tokenizer=tokenizer or plain_words
        )
    fitted: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    fitted |= {name: about[name] for name in ("text", "policy", "threshold")}
    return VectorCandidates(**fitted), coverage


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read manifest and arrays.

    Raises
    ------
    IndexFormatError
        If it is another kind of file, or of another format.
    CorruptIndexError
        If it has changed since it was written.
    """
    if not path.is_file():
        what = "it is a folder; name the file in it" if path.is_dir() else "there is no such file"
        raise IndexFormatError(f"{path} is not a saved gate: {what}")
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(file["manifest"].tobytes())
            if (about.get("kind"), about.get("format")) != (KIND, FORMAT):
                raise IndexFormatError(
                    f"{path} does not hold a saved gate of format {FORMAT}: fit the gate again, "
                    "and save it"
                )
            return about, {name: file[name] for name in (*ARRAYS, "counts")}
    except IndexFormatError:
        raise
    except Exception as error:  # a damaged archive or header may raise anything
        raise CorruptIndexError(
            f"{path} cannot be read as a saved gate: {error}; restore the file from a copy, or fit "
            "the gate again"
        ) from error
