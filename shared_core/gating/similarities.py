"""Similarities as the gate takes them: finite numbers, of which the highest counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def highest(similarities: float | Sequence[float]) -> float | None:
    """Return the highest similarity; None of none. ValueError if one is not finite."""
    values = np.asarray(similarities, np.float64).reshape(-1)
    return max(finite(value, "similarity") for value in values.tolist()) if values.size else None


def finite(value: float, what: str) -> float:
    """Return `value`, or raise ValueError if it is not finite; `what` names it."""
    if not math.isfinite(value):
        raise ValueError(f"{what} must be finite, got {value}")
    return float(value)
