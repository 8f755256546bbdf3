"""Vectors and similarities as the gate takes them: finite, of one model, of unit length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.embeddings import other_model
from shared_core.errors import EmbeddingMismatchError
from shared_core.vectors import l2_normalized


def unit_rows(vectors: npt.ArrayLike, count: int, dim: int | None, what: str) -> Vectors:
    """Return `vectors` as unit rows, shape (count, dim); a vector of zeros stays.

    Raises
    ------
    ValueError
        If the shape is another, or a value is not finite; `what` says whose they are.
    """
    rows = np.asarray(vectors, np.float32)
    if rows.size == 0 and count == 0:
        return np.empty((0, dim or 0), np.float32)
    if rows.ndim != 2 or len(rows) != count:
        raise ValueError(f"{what}: expected {count} vectors, got an array of shape {rows.shape}")
    if dim is not None and rows.shape[1] != dim:
        raise ValueError(
            f"{what}: vectors have dimension {rows.shape[1]}, those fitted before have {dim}: "
            "all must come from one embedding model"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueError(f"{what}: vector {bad[0]} holds a value that is not finite")
    return l2_normalized(rows)


def check_same_model(stored: Vectors, again: npt.ArrayLike) -> None:
    """Raise EmbeddingMismatchError if a known text's vector is no longer the stored one."""
    found = other_model(stored, np.asarray(again).reshape(-1))
    if found is not None:
        raise EmbeddingMismatchError(
            "the embedding model is not the one the gate was fitted with: a known question "
            f"{found}; fit anew"
        )


def highest(similarities: float | Sequence[float]) -> float | None:
    """Return the highest similarity; None of none. ValueError if one is not finite."""
    values = np.asarray(similarities, np.float64).reshape(-1)
    return max(finite(value, "similarity") for value in values.tolist()) if values.size else None


def finite(value: float, what: str) -> float:
    """Return `value`, or raise ValueError if it is not finite; `what` names it."""
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite, got {value}")
    return float(value)
