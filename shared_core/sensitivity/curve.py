"""The positional curve of a model: how much it attends to each part of the document region."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.checking import check_count
from shared_core.sensitivity.position_sensitivity import EPS, interpolated
from shared_core.sensitivity.records import Interval, Measurement, path_of

TENTHS = 10


@dataclass(frozen=True, kw_only=True)
class PositionalCurve(Measurement):
    """How much a model attends to each part of the document region, whatever its content.

    The positional scores hardly depend on the documents' order (GoodPositions, section 4), so a
    curve that has been averaged over prompts once places the documents of the next ones without
    a first round, by any ranking:
    ``attention_placement(ranking, curve.scores_for(sum(lengths)), lengths)``.

    Each end of the region is reported separately, since attention that rises towards the end alone
    is recency and not a U: `start` and `end` are the attention to the first and the last tenth of
    the region in multiples of that to its middle fifth, `edges` is their mean. 1 is flat. A curve
    made by hand needs a model, scores and n; `attention_by_position` measures the rest.

    Attributes
    ----------
    model, confidence, k, template, task, seed, date, versions, identity
        As of `Measurement`.
    scores
        Attention to each of so many equal parts of the region, first part first, in multiples of
        the region's mean.
    n
        Number of prompts behind it.
    band
        Pointwise interval (lower, upper) of each score, if known.
    intervals
        Intervals of ``"start"``, ``"end"`` and ``"edges"``, if known.
    """

    what: ClassVar[str] = "positional curve"
    command: ClassVar[str] = "posrag attention"

    scores: tuple[float, ...]
    n: int
    band: tuple[Interval, ...] | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        scores = finite_scores(self.scores)
        if not len(scores):
            raise ValueError(f"the curve of {self.model!r} has no scores")
        object.__setattr__(self, "scores", tuple(scores.tolist()))
        if self.band is not None:
            object.__setattr__(self, "band", tuple(map(tuple, self.band)))
        intervals = {name: tuple(bounds) for name, bounds in self.intervals.items()}
        object.__setattr__(self, "intervals", intervals)

    @classmethod
    def file_of(cls, model: str) -> Path:
        """Return the file of a model's curve: in ``curves``, within the folder of the profiles."""
        profile = path_of(model)
        return profile.parent / "curves" / profile.name

    @property
    def start(self) -> float:
        """Attention to the first tenth of the region, in multiples of that to its middle fifth."""
        return float(over_middle(self._tenths)["start"])

    @property
    def end(self) -> float:
        """Attention to the last tenth of the region, in multiples of that to its middle fifth."""
        return float(over_middle(self._tenths)["end"])

    @property
    def edges(self) -> float:
        """Mean of `start` and `end`."""
        return float(over_middle(self._tenths)["edges"])

    @property
    def _tenths(self) -> Scores:
        return parts_of_region(np.array(self.scores), TENTHS)

    def scores_for(self, n_tokens: int) -> Scores:
        """Return the score of each of `n_tokens` tokens, interpolated linearly, shape (n_tokens,).

        A score belongs to the middle of its part, a token to the middle of its place; the curve is
        flat beyond the first and the last middle.

        Raises
        ------
        ValueError
            If `n_tokens` is negative.
        """
        check_count(n_tokens, "n_tokens", 0)
        parts = len(self.scores)
        places = [part + 0.5 for part in range(parts)]
        return interpolated(middles(n_tokens) * parts, places, self.scores, parts)


def resolve_curve(curve: PositionalCurve | str | Path | None) -> PositionalCurve | None:
    """Return the curve saved under a path or a model's name, or `curve` itself.

    Raises
    ------
    ProfileNotFoundError
        If there is neither such a file nor a saved curve of that name.
    ValueError
        If the file is not a positional curve.
    """
    return PositionalCurve.load(curve) if isinstance(curve, str | Path) else curve


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
