"""The position profile of a model: how well it reads a passage in each slot of its context."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from shared_core.checking import check_count, check_counts_of, check_fractions
from shared_core.errors import ProfileNotFoundError
from shared_core.sensitivity.position_sensitivity import check_shares, position_sensitivity_index
from shared_core.sensitivity.published import published_fields, published_names
from shared_core.sensitivity.records import (
    Interval,
    check_model,
    checked_interval,
    find_record,
    path_of,
    profile_folder,
    saved_names,
    write_record,
)
from shared_core.sensitivity.region import interpolated

Outcomes = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class PositionProfile:
    """How well one model reads a passage in each slot of its context.

    Every list by slot runs over `slots`. A profile made by hand needs a model and the accuracy
    in every slot; `Probe` measures the rest.

    Attributes
    ----------
    model
        Name of the model.
    accuracy
        Mean accuracy in [0, 1] with the gold passage in each slot, slot 0 first; None where only
        the distracting effect was measured. With another `measure`, the mean of that.
    distraction
        Mean distracting effect in [0, 1] of a hard distractor in each slot, if it was measured.
    interval
        Interval (lower, upper) of the index, if there is one.
    n, distraction_n
        Number of questions behind each slot's accuracy and distracting effect, if known.
    source
        Where the numbers come from: a citation, or what measured them.
    k
        Number of passages in the context; as many as `accuracy` has values unless given.
    slots
        The slots that were measured, ascending; all `k` unless given.
    outcomes
        Value in [0, 1] of each question in each slot, shape (n, len(slots)), if known.
    confidence
        Nominal coverage of `interval`.
    measure
        What was averaged: ``"accuracy"``, ``"logprob"``, ``"attention"`` or ``"distraction"``.
    grader, template, task
        How answers were judged, the prompt, and the kind of questions.
    seed, date, versions
        Seed of questions and intervals, date (ISO 8601), versions of the software.
    identity
        What distinguishes the model from others of the same name, if it was measured here.
    stopped
        Why fewer questions were asked than given; None if all were asked.
    failures
        Why the model failed on questions, which are left out -> how many they are.
    empty
        How many of the answers to the others are empty: wrong ones, and no abstentions.
    """

    model: str
    accuracy: tuple[float, ...] | None = None
    distraction: tuple[float, ...] | None = None
    interval: Interval | None = None
    n: int | None = None
    distraction_n: int | None = None
    source: str | None = None
    k: int = 0
    slots: tuple[int, ...] = ()
    outcomes: Outcomes | None = field(default=None, repr=False)
    confidence: float = 0.95
    measure: str = "accuracy"
    grader: str | None = None
    template: str | None = None
    task: str | None = None
    seed: int | None = None
    date: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    identity: str | None = None
    stopped: str | None = None
    failures: Mapping[str, int] = field(default_factory=dict, hash=False)
    empty: int = 0

    def __post_init__(self) -> None:
        check_model(self.model)
        check_fractions({"confidence": self.confidence})
        check_counts_of(self, {"k": 0, "empty": 0})
        check_counts_of(self, {"n": 1, "distraction_n": 1}, optional=True)
        for name in ("accuracy", "distraction"):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, check_shares(values, name))
        curve = self.accuracy if self.accuracy is not None else self.distraction
        if curve is None:
            raise ValueError(
                f"the profile of {self.model!r} holds neither accuracy nor distraction"
            )
        if self.distraction is not None and len(self.distraction) != len(curve):
            raise ValueError(
                f"distraction has {len(self.distraction)} slots, accuracy has {len(curve)}"
            )
        object.__setattr__(self, "k", self.k or len(curve))
        object.__setattr__(self, "slots", _checked_slots(self.slots, self.k, len(curve)))
        if self.interval is not None:
            object.__setattr__(self, "interval", checked_interval(self.interval, "interval"))
        if self.outcomes is not None:
            object.__setattr__(self, "outcomes", _checked_outcomes(self.outcomes, self.slots))

    @cached_property
    def psi(self) -> float:
        """Position sensitivity index (CAUS eq. 3); NaN if the profile is inconclusive."""
        if self.accuracy is None:
            return math.nan
        return position_sensitivity_index(self.accuracy_at(self.k))

    def accuracy_at(self, k: int) -> list[float]:
        """Accuracy in each of `k` slots, interpolated linearly over the relative position.

        Raises
        ------
        ValueError
            If the profile holds no accuracy.
        """
        return self._resampled("accuracy", self.accuracy, k)

    def distraction_at(self, k: int) -> list[float]:
        """Distracting effect in each of `k` slots, interpolated like `accuracy_at`.

        Raises
        ------
        ValueError
            If the profile holds no distracting effect.
        """
        return self._resampled("distracting effect", self.distraction, k)

    def _resampled(self, what: str, values: Sequence[float] | None, k: int) -> list[float]:
        if values is None:
            raise ValueError(f"the profile of {self.model!r} holds no {what}")
        if k == len(values) == self.k:
            return list(values)
        at = np.linspace(0, self.k - 1, k) if k > 1 else np.zeros(k)
        return interpolated(at, self.slots, values, self.k - 1).tolist()  # type: ignore[no-any-return]

    def save(self, path: str | Path | None = None) -> Path:
        """Write the profile as JSON and return the path.

        Parameters
        ----------
        path
            File to write; by default one named after the model in `profile_folder`, where
            ``psi=<model name>`` finds it.
        """
        return write_record(self, path_of(self.model) if path is None else Path(path))

    @classmethod
    def load(cls, name: str | Path) -> Self:
        """Read a profile by path, by the model name it was saved under, or a published one.

        Raises
        ------
        ProfileNotFoundError
            If there is no such file and neither a saved nor a published profile of that name.
        ValueError
            If the file is not a position profile.
        """
        found = find_record(cls, name, path_of(str(name)), what="position profile")
        if found is not None:
            return found
        published = published_fields(str(name))
        if published is not None:
            return cls(**published)
        raise ProfileNotFoundError(
            f"no position profile {str(name)!r}: neither a file, nor a name saved in "
            f"{profile_folder()} ({saved_names(profile_folder())}), nor a published one "
            f"({', '.join(published_names())}); `posrag probe MODEL` measures one"
        )


def _checked_slots(slots: Sequence[int], k: int, measured: int) -> tuple[int, ...]:
    if not slots:
        if measured != k:
            raise ValueError(f"{measured} values for k={k} slots: say which by slots=")
        return tuple(range(k))
    checked = tuple(check_count(slot, "a slot", 0) for slot in slots)
    if list(checked) != sorted({*checked}) or not 0 <= checked[0] <= checked[-1] < k:
        raise ValueError(f"slots must ascend within 0..{k - 1}, got {slots}")
    if len(checked) != measured:
        raise ValueError(f"{measured} values for {len(checked)} slots {checked}")
    return checked


def _checked_outcomes(outcomes: Outcomes, slots: Sequence[int]) -> Outcomes:
    checked = tuple(tuple(float(value) for value in row) for row in outcomes)
    for number, row in enumerate(checked):
        check_shares(row, f"outcomes of question {number}")
        if len(row) != len(slots):
            raise ValueError(f"outcomes of question {number} fill {len(row)} of {len(slots)} slots")
    return checked
