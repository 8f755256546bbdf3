"""The position profile of a model: how well it reads a passage in each slot of its context."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np

from shared_core.arrays import Scores
from shared_core.evaluation.intervals import contrast_interval, mean_interval
from shared_core.sensitivity.position_sensitivity import (
    check_shares,
    interpolated,
    position_sensitivity_index,
)
from shared_core.sensitivity.records import Interval, Measurement

NEAR = 0.1
"""Two lengths are the same if one is longer by at most that share."""

FARTHEST = 2
"""Times the passages of a profile up to which its curve is stretched."""

Outcomes = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class PositionProfile(Measurement):
    """How well one model reads a passage in each slot of its context.

    Every list by slot runs over `slots`. A profile made by hand needs a model and the accuracy
    in every slot; `Probe` measures the rest.

    Attributes
    ----------
    model, confidence, template, task, seed, date, versions, identity
        As of `Measurement`; `confidence` is that of `interval`.
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
    measure
        What was averaged: ``"accuracy"``, ``"logprob"``, ``"attention"`` or ``"distraction"``.
    grader
        How answers were judged.
    stopped
        Why fewer questions were asked than given; None if all were asked.
    failures
        Why the model failed on questions, which are left out -> how many they are.
    empty
        How many of the answers to the others are empty: wrong ones, and no abstentions.
    tokens
        Mean tokens of the passages of a prompt (`estimate_tokens`), if known.
    window
        Longest prompt that the model reads, in tokens, if known.
    lengths
        The same model with other numbers of passages; see `of_lengths`.
    """

    what: ClassVar[str] = "position profile"
    command: ClassVar[str] = "posrag probe"

    k: int = 0
    accuracy: tuple[float, ...] | None = None
    distraction: tuple[float, ...] | None = None
    interval: Interval | None = None
    n: int | None = None
    distraction_n: int | None = None
    source: str | None = None
    slots: tuple[int, ...] = ()
    outcomes: Outcomes | None = field(default=None, repr=False)
    measure: str = "accuracy"
    grader: str | None = None
    stopped: str | None = None
    failures: Mapping[str, int] = field(default_factory=dict, hash=False)
    empty: int = 0
    tokens: float | None = None
    window: int | None = None
    lengths: tuple[PositionProfile, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
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
        k = self.k or len(curve)
        slots = tuple(self.slots or range(k))
        if len(slots) != len(curve):
            raise ValueError(f"{len(curve)} values for {len(slots)} slots: say which by slots=")
        if list(slots) != sorted({*slots}) or not 0 <= slots[0] <= slots[-1] < k:
            raise ValueError(f"slots must ascend within 0..{k - 1}, got {slots}")
        read = (
            PositionProfile(**each) if isinstance(each, dict) else each for each in self.lengths
        )
        rows = (
            None
            if self.outcomes is None
            else tuple(tuple(map(float, row)) for row in self.outcomes)
        )
        for name, value in (
            ("k", k),
            ("slots", slots),
            ("interval", None if self.interval is None else tuple(self.interval)),
            ("outcomes", rows),
            ("lengths", tuple(read)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of_lengths(cls, profiles: Sequence[PositionProfile]) -> PositionProfile:
        """Return the profile with the most passages, which holds the others as `lengths`.

        Those that are of several lengths already bring all of them. A gate reads the one that is
        nearest to the prompt at hand; see `nearest`.

        Raises
        ------
        ValueError
            If there are none, or two have as many passages, or they are of different models or
            measures.
        """
        profiles = [each for given in profiles for each in given.by_length]
        ks, kinds = [each.k for each in profiles], {(each.model, each.measure) for each in profiles}
        if len({*ks}) < len(ks) or len(kinds) != 1:
            raise ValueError(
                "give profiles of one model and measure with different numbers of passages, got "
                f"k={ks} of {sorted(kinds)}"
            )
        *others, longest = sorted(profiles, key=lambda each: each.k)
        return replace(longest, lengths=tuple(others))

    @property
    def outcome(self) -> str:
        """What its points are points of."""
        return "probability" if self.measure == "logprob" else self.measure

    @property
    def by_length(self) -> tuple[PositionProfile, ...]:
        """The profile of each number of passages, ascending."""
        return tuple(sorted((replace(self, lengths=()), *self.lengths), key=lambda each: each.k))

    def nearest(self, k: int, tokens: float | None = None) -> tuple[PositionProfile, ...]:
        """Return what was measured at a length, or next to it: one profile, or two it is between.

        What was measured with less than half as many passages is left out, unless all was.

        Parameters
        ----------
        k
            Passages of the prompt.
        tokens
            Tokens of these. Where they are known, of the profiles too, they say what is near.
        """
        enough = tuple(each for each in self.by_length if k <= FARTHEST * each.k)
        measured = enough or self.by_length
        size, sizes = float(k), [float(each.k) for each in measured]
        known = [each.tokens for each in measured if each.tokens is not None]
        if tokens is not None and len(known) == len(measured):
            size, sizes = tokens, known
        below = [at for at, each in enumerate(sizes) if each <= size * (1 + NEAR)][-1:]
        above = [at for at, each in enumerate(sizes) if each >= size * (1 - NEAR)][:1]
        return tuple(measured[at] for at in sorted({*below, *above}))

    @classmethod
    def published(cls) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields of the published profiles, by name."""
        return _published()

    @cached_property
    def psi(self) -> float:
        """Position sensitivity index (CAUS eq. 3); NaN if the profile is inconclusive."""
        if self.accuracy is None:
            return math.nan
        return position_sensitivity_index(self.accuracy_at(self.k))

    def bands(self, curve: str = "accuracy") -> tuple[Scores, Scores] | None:
        """Return lower and upper bounds of a curve by slot, each of shape (len(slots),).

        With outcomes they are those of the comparison within questions: the interval of each slot's
        difference from the question's mean slot (`contrast_interval`, 95%), around the mean of all.
        Spread between questions, which moves no slot against another, is not in it. Without
        outcomes it is Wilson's interval of each slot; None if the number of questions is not known.

        Parameters
        ----------
        curve
            ``"accuracy"`` or ``"distraction"``.
        """
        values, n = getattr(self, curve), self.n if curve == "accuracy" else self.distraction_n
        if values is None or n is None or n < 2:
            return None
        own = "distraction" if self.accuracy is None else "accuracy"
        if self.outcomes is None or curve != own or len(self.outcomes) < 2:
            return mean_interval(values, n)
        rows = np.array(self.outcomes)
        differences = np.eye(rows.shape[1]) - 1 / rows.shape[1]
        bounds = np.array([contrast_interval(rows, each) for each in differences])
        lower, upper = np.clip(rows.mean() + bounds.T, 0, 1)
        return lower, upper

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


def published_names() -> list[str]:
    """Return the names under which a published profile is found.

    A name is the model's; ``#key-value`` follows where the task was key-value retrieval. The
    sources print the accuracy by slot and the number of questions, not the outcome of each
    question, so their intervals treat the slots as independent samples.
    """
    return sorted(_published())


@cache
def _published() -> dict[str, dict[str, Any]]:
    text = files("shared_core.sensitivity").joinpath("published.json").read_text("utf-8")
    profiles: dict[str, dict[str, Any]] = json.loads(text)
    return profiles
