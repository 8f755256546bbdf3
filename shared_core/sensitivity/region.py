"""Scores over the document region of a prompt, part by part."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_count
from shared_core.sensitivity.position_sensitivity import EPS

TENTHS = 10


def finite_scores(scores: npt.ArrayLike) -> Scores:
    """Return scores as float64 of shape (n,); raise ValueError if they are not, or not finite."""
    values = np.asarray(scores, np.float64)
    if values.ndim != 1:
        raise ValueError(f"scores must have shape (n,), got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"scores must be finite, got {values[bad[0]]} at position {bad[0]}")
    return values


def relative_scores(readings: Sequence[npt.ArrayLike], points: int) -> Scores:
    """Return the mean of each reading over equal parts of it, in multiples of its overall mean.

    Attention spreads thinner over longer prompts, so without the scaling the shortest would
    outweigh the others. Placement compares sums within one curve, where the scale cancels out.

    Parameters
    ----------
    readings
        Positional scores of each prompt's document region, shape (n,), of any lengths.
    points
        Number of parts, >= 1.

    Returns
    -------
    Scores
        Shape (readings, points).

    Raises
    ------
    ValueError
        If there are no readings, if one is empty, not finite or sums to 0, or if `points` is below
        1.
    """
    check_count(points, "points")
    if not readings:
        raise ValueError("no readings to make a curve of; give one at least")
    rows = []
    for number, reading in enumerate(readings):
        scores = finite_scores(reading)
        total = math.fsum(scores)
        if total <= 0:
            raise ValueError(
                f"reading {number} has no attention: its {len(scores)} scores sum to 0"
            )
        rows.append(parts_of_region(scores, points) * (len(scores) / total))
    return np.array(rows)


def parts_of_region(scores: Scores, points: int) -> Scores:
    """Return the mean of scores, shape (n,), over each of `points` equal parts of them."""
    below = np.concatenate([[0.0], np.cumsum(scores)])
    edges = np.linspace(0, len(scores), points + 1)
    parts: Scores = np.diff(np.interp(edges, np.arange(len(below)), below))
    return parts * (points / len(scores))


def middles(parts: int) -> Scores:
    """Return the middles of equal parts of [0, 1]."""
    return (np.arange(parts) + 0.5) / max(1, parts)


def over_middle(tenths: Scores) -> dict[str, Scores]:
    """Return how a curve's ends compare with its middle, as `PositionalCurve` defines it.

    ``start`` and ``end`` are the first and the last tenth over the mean of the middle two, and
    ``edges`` is their mean. The ``eps = 1e-7`` of CAUS eq. 3 is added to the middle, so that the
    result is always finite.

    Parameters
    ----------
    tenths
        One curve or several, shape (..., 10), >= 0.
    """
    middle = tenths[..., TENTHS // 2 - 1 : TENTHS // 2 + 1].mean(axis=-1) + EPS
    start, end = tenths[..., 0] / middle, tenths[..., -1] / middle
    return {"start": start, "end": end, "edges": (start + end) / 2}


def interpolated(
    at: Scores, places: Sequence[float], values: Sequence[float], end: float
) -> Scores:
    """Interpolate linearly; mirror-symmetric values stay symmetric to the last bit.

    Otherwise rounding would order what is equal by symmetry.

    Parameters
    ----------
    at
        Places to interpolate at, symmetric about ``end / 2``, ascending, shape (n,).
    places, values
        Known points, each of shape (m,); places ascend and are multiples of 0.5.
    end
        Mirror image of place 0; an integer.
    """
    known, mirrored = np.array(places), end - np.array(places)[::-1]
    forwards, backwards = np.interp(at, known, values), np.interp(at, mirrored, values[::-1])
    interpolated: Scores = (forwards + backwards[::-1]) / 2
    return interpolated
