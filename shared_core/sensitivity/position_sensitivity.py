"""The position sensitivity index (CAUS eq. 3), of one curve or of many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.checking import check_choice
from shared_core.evaluation.intervals import bootstrap_interval

EPS = 1e-7
"""CAUS eq. 3 adds it to the denominator, so that the index stays finite."""

THRESHOLD = 1.0
"""Index of a model that reads the edges and the middle equally well."""

Bands = Literal["slots", "thirds"]


def position_sensitivity_index(accuracy: Sequence[float], *, bands: Bands = "slots") -> float:
    """Position sensitivity index: edge accuracy over middle accuracy (CAUS eq. 3).

    ``(top + bottom) / (2 * middle + eps)`` with ``eps = 1e-7``. Above 1 the model reads the
    edges of its context better than the middle.

    Parameters
    ----------
    accuracy
        Mean accuracy in [0, 1] with the gold passage in each slot, shape (k,), k >= 1.
    bands
        ``"slots"``: top is slot 0, bottom is slot k-1, middle is slot (k-1)//2.
        ``"thirds"``: the mean over the slots of each third.

    Returns
    -------
    float
        The index, >= 0; NaN if top, middle and bottom are all zero, where it is undefined.

    Raises
    ------
    ValueError
        If `accuracy` is empty or holds a value outside [0, 1], or `bands` is unknown.
    """
    values = check_shares(accuracy, "accuracy")
    check_choice(bands, "bands", Bands)
    edges_and_middle = [[values[slot]] for slot in index_slots(len(values))]
    parts = _thirds(values) if bands == "thirds" else edges_and_middle
    return float(_index(*(np.array(np.mean(part)) for part in parts)))


def index_slots(k: int) -> tuple[int, int, int]:
    """Return the slots that the index of a context of `k` passages is made of."""
    return 0, (k - 1) // 2, k - 1


def spread_slots(k: int, n: int) -> tuple[int, ...]:
    """Return about `n` slots of `k`, evenly spaced, with those that the index is made of."""
    middle = index_slots(k)[1]
    spread = np.linspace(0, middle, (n + 1) // 2), np.linspace(middle, k - 1, (n + 1) // 2)
    return tuple(sorted({round(slot) for half in spread for slot in half.tolist()}))


def check_slots(slots: Sequence[int], k: int, *, first: int = 0) -> None:
    """Check that an index of a context of `k` passages can be made of `slots`, counted from 0.

    Parameters
    ----------
    slots, k
        As of `Probe`.
    first
        Number of the first slot in the error.

    Raises
    ------
    ValueError
        If the slots do not ascend, lack one that the index needs, or one lies outside the context.
    """
    needed = index_slots(k)
    got = tuple(slot + first for slot in slots)
    if list(slots) != sorted({*slots}) or not {*needed} <= {*slots}:
        held = tuple(slot + first for slot in needed)
        raise ValueError(f"slots must ascend and hold {held}, got {got}")
    if not 0 <= slots[0] <= slots[-1] < k:
        raise ValueError(f"slots must lie in {first}..{k - 1 + first}, got {got}")


def index_statistic(slots: Sequence[int], k: int) -> Callable[[Scores], Scores]:
    """Return the function from accuracies in `slots`, shape (r, len(slots)), to indices (r,).

    A slot the index needs and `slots` lacks is interpolated linearly between its neighbours.
    """
    weights = np.zeros((len(slots), 3))
    for column, slot in enumerate(index_slots(k)):
        for row, unit in enumerate(np.eye(len(slots))):
            weights[row, column] = np.interp(slot, slots, unit)

    return lambda accuracy: _index(*(accuracy @ weights).T)


def _index(top: Scores, middle: Scores, bottom: Scores) -> Scores:
    undefined = (top == 0) & (middle == 0) & (bottom == 0)
    return np.where(undefined, np.nan, (top + bottom) / (2 * middle + EPS))


def index_interval(
    outcomes: Scores, slots: Sequence[int], k: int, *, confidence: float, seed: int
) -> tuple[float, float] | None:
    """Return the bootstrap interval of the index over questions, or None if it is undefined.

    It needs at least two questions and one outcome above 0.

    Parameters
    ----------
    outcomes
        Value of each question in each of `slots`, shape (n, len(slots)), in [0, 1].
    slots, k
        Slots that were measured, of how many.
    confidence, seed
        As in `bootstrap_interval`.
    """
    if len(outcomes) < 2 or not outcomes.any():
        return None
    statistic = index_statistic(slots, k)
    bounds = bootstrap_interval(outcomes, statistic, confidence=confidence, seed=seed)
    return None if np.isnan(bounds).any() else bounds


def _thirds(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    size = max(1, len(values) // 3)
    return values[:size], values[size : len(values) - size] or values, values[-size:]


def check_shares(values: Sequence[float], what: str) -> tuple[float, ...]:
    """Return values by slot as floats.

    Raises
    ------
    ValueError
        If there are no values, or one lies outside [0, 1].
    """
    checked = tuple(float(value) for value in values)
    if not checked:
        raise ValueError(f"{what} by slot is empty; give one value per slot")
    for slot, value in enumerate(checked):
        if not 0 <= value <= 1:
            raise ValueError(f"{what} must lie in [0, 1], got {value} in slot {slot}")
    return checked


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
