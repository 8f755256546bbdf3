"""The order gate: which order a model reads best, and whether that is sure.

CAUS (Algorithm 1, line 16) compares the edges of a context with its middle, and then knows one
order, the U-shape. That number does not see a slope: a model that reads the last slot best wants
the best passage there. So a position profile is asked for more: how much accuracy each order is
expected to gain over the ranked one, and whether its interval leaves zero out.

The other gate, `shared_core.gating`, decides whether to retrieve at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import TypeAlias

import numpy as np

from shared_core.arrays import Scores
from shared_core.checking import check_choice
from shared_core.errors import ProfileNotFoundError
from shared_core.evaluation.interim import bound_text
from shared_core.evaluation.intervals import contrast_interval, independent_contrast_interval
from shared_core.placement import resolve_placement
from shared_core.placement.placements import Inverse, Placement, UShape, UShapeBestLast
from shared_core.sensitivity.position_sensitivity import THRESHOLD, interpolated
from shared_core.sensitivity.profile import FARTHEST, NEAR, PositionProfile
from shared_core.types import OrderDecision, OrderRule
from shared_core.wording import counted

Psi: TypeAlias = float | PositionProfile | str | Path | None
"""A position sensitivity index, a profile, its path or name, ``"always"`` or ``"never"``."""

CANDIDATES: tuple[Placement, ...] = (Inverse(), UShape(), UShapeBestLast())
"""The orders that ``"auto"`` compares with the ranked one: few, and none made from the profile,
which would be judged on the questions that made it."""

LEAST_HALVED = 10
"""Questions of a profile from which either half may make an order."""

ROUNDING = 1e-9
"""A gain of an exact profile that is not above it comes from rounding."""

HIT_RATES = tuple(0.52 / rank**2 for rank in range(1, 101))
"""Chance that the passage of each rank is the one that is needed: the mean over the collections of
``python -m benchmarks.quality``, which is .519, .131, .056, .039, .018 for the first five."""


def profile_of(psi: Psi) -> PositionProfile | None:
    """Return the profile that `psi` is or names, or None if it is neither.

    Raises
    ------
    ValueError
        If `psi` is a text that is a number.
    ProfileNotFoundError
        If `psi` is a path or a name under which nothing is saved.
    """
    if isinstance(psi, PositionProfile):
        return psi
    if isinstance(psi, str) and _is_number(psi):
        raise ValueError(f"{psi!r} is a text, not an index; give the number: psi={psi.strip()}")
    if isinstance(psi, str | Path) and psi not in ("always", "never"):
        try:
            return PositionProfile.load(psi)
        except ProfileNotFoundError as error:
            also = 'instead of a profile, psi takes a number, "always" or "never"'
            raise ProfileNotFoundError(f"{error}; {also}") from None
    return None


def decide_order(
    psi: Psi,
    placement: str | Placement = "auto",
    *,
    k: int | None = None,
    tokens: float | None = None,
    rule: OrderRule = "gain",
    hit_rates: Sequence[float] | None = None,
) -> OrderDecision:
    """Decide in which order `k` ranked passages are put into the slots of a prompt.

    Parameters
    ----------
    psi
        What is known of the model. None: nothing, and the gate does not guess but keeps the ranked
        order. ``"always"`` and ``"never"`` decide without knowledge. A position sensitivity index
        (finite, >= 0) opens the gate above 1.0 (CAUS, section III-D). A `PositionProfile`, or the
        path or name of a saved one, decides by `rule`.
    placement
        The order to judge: a name in `PLACEMENTS`, or a placement. ``"auto"``: by a profile the
        best of `CANDIDATES`, else the U-shape of CAUS.
    k
        Number of passages; by default as many as the profile was measured with.
    tokens
        Tokens of the passages, if known. Of a profile of several lengths that which is nearest to
        them, or to `k`, decides, see `PositionProfile.nearest`; between two, an order must be
        better by both, whichever of them it is made from.
    rule
        How a profile decides. ``"gain"``: an order is expected to gain
        ``sum over ranks of hit_rates[rank] * (accuracy[its slot] - accuracy[rank])`` over the
        ranked one; the gate opens if the lower bound of that is above zero, at the profile's
        confidence. The bound is that over the profile's questions; binomial by slot where these are
        not known. A profile without a number of questions is taken as exact. ``"psi"``: the index
        must exceed 1.0. An order that is made from the profile, as ``"max_relevance"``, is made
        from one half of its questions and judged by the other, and the other way round. Where they
        are not known, what made it judges it, too, and opens the gate too often.
    hit_rates
        Chance that the passage of each rank, best first, is the one that is needed; the last stands
        for those behind it, too. None: `HIT_RATES`.

    Raises
    ------
    ValueError
        If `psi` is a negative or non-finite number or something else, or `rule` is unknown.
    ProfileNotFoundError
        If `psi` names a profile that is not there.
    """
    check_choice(rule, "rule", OrderRule)
    profile = profile_of(psi)
    k = k if k is not None else profile.k if profile else 0
    for each in profile.nearest(k, tokens) if profile is not None else ():
        if unusable := _unusable(each):
            return _decision(None, k, each, None, unusable)
    if profile is not None and rule == "gain":
        candidates = CANDIDATES if placement == "auto" else (resolve_placement(placement),)
        return _by_gain(profile, candidates, k, tokens, hit_rates)
    order = UShape() if placement == "auto" else resolve_placement(placement)
    if profile is not None:
        profile = min(profile.nearest(k, tokens), key=lambda each: each.psi)
    opened, index, reason = _by_index(psi, profile)
    if profile is not None:
        reason += _stretched(profile, k, tokens)
    return _decision(order if opened else None, k, profile, index, reason)


def length_for(
    profile: PositionProfile, placement: Placement, k: int, tokens: float | None = None
) -> PositionProfile:
    """Return the length of a profile that an order is made from where the gate is open.

    Parameters
    ----------
    profile, k, tokens
        As in `decide_order`.
    placement
        One that is made from a profile.
    """
    nearest = profile.nearest(k, tokens)
    if len(nearest) == 1 or any(each.accuracy is None for each in nearest):
        return nearest[0]
    return _best(nearest, [placement], k, None).made_from


def rates_by_rank(hit_rates: Sequence[float] | None, k: int) -> Scores:
    """Return the chance of each of `k` ranks to be what is needed; see `decide_order`."""
    rates = np.array(HIT_RATES if hit_rates is None else hit_rates, np.float64)[:k]
    return np.pad(rates, (0, k - len(rates)), mode="edge")


def _decision(
    placement: Placement | None,
    k: int,
    profile: PositionProfile | None,
    psi: float | None,
    reason: str,
    gain: float | None = None,
    interval: tuple[float, float] | None = None,
) -> OrderDecision:
    slots = tuple(range(k)) if placement is None else placement(k, profile)
    name = "sequential" if placement is None else placement.name
    return OrderDecision(placement is not None, name, slots, psi, reason, gain, interval)


@dataclass(frozen=True)
class OrderGain:
    """What an order is expected to gain over the ranked one.

    Attributes
    ----------
    placement, profile
        The order, and what was measured.
    made_from
        The profile that the order is made from, if it is made from one.
    gain
        Expected gain, of the profile's measure.
    interval
        Its interval, at the profile's confidence; None if nothing says how sure it is, or there is
        a single question.
    """

    placement: Placement
    profile: PositionProfile
    made_from: PositionProfile
    gain: float
    interval: tuple[float, float] | None

    @property
    def surely(self) -> float:
        """What it gains at least; of a single question nothing is sure."""
        if self.interval is not None:
            return self.interval[0]
        return self.gain if self.profile.n is None else -math.inf

    @property
    def is_sure(self) -> bool:
        """Whether what it gains at least is above zero, and above rounding."""
        return self.surely > ROUNDING

    @property
    def points(self) -> str:
        """The gain in points, with its interval."""
        bounds = self.interval and " [{:+.1f}, {:+.1f}]".format(*(100 * x for x in self.interval))
        return f"{100 * self.gain:+.1f}{bounds or ''} points"


def order_gains(
    profile: PositionProfile,
    placements: Sequence[Placement] = CANDIDATES,
    *,
    k: int | None = None,
    hit_rates: Sequence[float] | None = None,
    made_from: PositionProfile | None = None,
) -> list[OrderGain]:
    """Return what each order is expected to gain, by a profile with accuracy; see `decide_order`.

    Those of `lengths` are not read. `made_from` is what orders are made from, if it is another.
    """
    k = k if k is not None else profile.k
    rates, places = rates_by_rank(hit_rates, k), np.linspace(0, profile.k - 1, k)
    units = np.eye(len(profile.slots)).tolist()
    at_slots = np.array(
        [interpolated(places, profile.slots, unit, profile.k - 1) for unit in units]
    )
    made_from = made_from or profile
    return [_judged(placement, profile, made_from, at_slots, rates) for placement in placements]


def _by_gain(
    profile: PositionProfile,
    candidates: Sequence[Placement],
    k: int,
    tokens: float | None,
    hit_rates: Sequence[float] | None,
) -> OrderDecision:
    whose, nearest = f"the profile of {profile.model}", profile.nearest(k, tokens)
    farthest = max((profile, *profile.lengths), key=lambda each: each.k)
    if k > FARTHEST * farthest.k:
        reason = f"{whose} was measured with {farthest.k} passages, which says little of {k}"
        return _decision(None, k, farthest, farthest.psi, reason)
    best = _best(nearest, candidates, k, hit_rates)
    known, opened = best.profile, best.is_sure
    name, what = best.placement.name, "should be" if opened else "is not surely"
    reason = (
        f"{name} {what} better than the ranked order: "
        f"{best.points} of {known.outcome} by {_known_from(known)}{_stretched(known, k, tokens)}"
    )
    order = best.placement if opened else None
    return _decision(order, k, best.made_from, known.psi, reason, best.gain, best.interval)


def _best(
    nearest: Sequence[PositionProfile],
    candidates: Sequence[Placement],
    k: int,
    hit_rates: Sequence[float] | None,
) -> OrderGain:
    """Return the best order by the length that speaks least for it, whichever it is made from."""
    least: list[OrderGain] = []
    for maker in nearest:  # by which an order that needs no profile is the same
        orders = [each for each in candidates if each.needs_profile or maker is nearest[0]]
        by_length = [
            order_gains(each, orders, k=k, hit_rates=hit_rates, made_from=maker) for each in nearest
        ]
        least += (
            min(gains, key=lambda each: each.surely) for gains in zip(*by_length, strict=True)
        )
    return max(least, key=lambda each: (each.surely, each.gain))


def _judged(
    candidate: Placement,
    profile: PositionProfile,
    made_from: PositionProfile,
    at_slots: Scores,
    rates: Scores,
) -> OrderGain:
    """Judge an order.

    The questions that made an order would praise it, and other lengths may have been asked the
    same: one that is made from a profile is made from either half of them, and judged by the other.
    """

    def contrast(known: PositionProfile) -> Scores:
        weights: Scores = at_slots @ (rates[[*candidate(len(rates), known)]] - rates)
        return weights

    rows, made = (np.array(each.outcomes or ()) for each in (profile, made_from))
    if candidate.needs_profile and min(len(rows), len(made)) >= LEAST_HALVED:
        first, second = (
            replace(made_from, accuracy=tuple(made[at::2].mean(axis=0)), outcomes=None)
            for at in range(2)
        )
        weights = np.array([contrast(second), contrast(first)])[np.arange(len(rows)) % 2]
        interval = contrast_interval(rows, weights, confidence=profile.confidence)
        gain = float((rows * weights).sum(axis=1).mean())
        return OrderGain(candidate, profile, made_from, gain, interval)
    weights = contrast(made_from)
    gain = float(weights @ np.array(profile.accuracy))
    return OrderGain(candidate, profile, made_from, gain, _interval(profile, weights))


def _interval(profile: PositionProfile, contrast: Scores) -> tuple[float, float] | None:
    if profile.outcomes is not None and len(profile.outcomes) > 1:
        return contrast_interval(profile.outcomes, contrast, confidence=profile.confidence)
    if profile.n is not None and profile.n > 1:
        return independent_contrast_interval(
            profile.accuracy or (), profile.n, contrast, confidence=profile.confidence
        )
    return None


def _known_from(profile: PositionProfile) -> str:
    n = profile.n or (profile.outcomes and len(profile.outcomes))
    asked = counted(n, "question") if n else "taken as exact: it says nothing of its questions"
    when = [f"measured {_published(profile)}"] if _published(profile) else []
    return f"the profile of {profile.model} ({', '.join([asked, *when])})"


def _published(profile: PositionProfile) -> str:
    """Return the day of what others have measured, as far as it is known."""
    return "" if profile.source == "posrag probe" else (profile.date or "")[:10]


def _stretched(profile: PositionProfile, k: int, tokens: float | None) -> str:
    """Say in brackets what was measured, where that is not what is asked for."""
    measured, asked, notes = f"{profile.k} passages", f"{k}", []
    if tokens is not None and profile.tokens is not None:
        far = tokens > FARTHEST * profile.tokens
        longer = (1 + NEAR) * profile.tokens
        if far or (profile.window and tokens > max(profile.window / 2, longer)):
            notes.append(
                f"extrapolated from {profile.tokens:,.0f} tokens of passages to {tokens:,.0f}"
            )
        elif abs(tokens - profile.tokens) > NEAR * profile.tokens:
            measured += f" and {profile.tokens:,.0f} tokens"
            asked += f" and {tokens:,.0f}"
    if measured != f"{k} passages":
        how = "extrapolated" if k > FARTHEST * profile.k else "interpolated"
        notes.insert(0, f"measured with {measured}, {how} to {asked}")
    return f" ({'; '.join(notes)})" if notes else ""


def _unusable(profile: PositionProfile) -> str | None:
    """Return why a profile decides nothing, if it does not."""
    if profile.accuracy is None:
        return (
            f"the profile of {profile.model} holds no accuracy: join it to one of accuracy: "
            "dataclasses.replace(profile, distraction=..., distraction_n=...)"
        )
    if math.isnan(profile.psi):
        return f"the profile of {profile.model} is inconclusive: no slot was read"
    return None


def _by_index(psi: Psi, profile: PositionProfile | None) -> tuple[bool, float | None, str]:
    """Return whether the index opens the gate, the index, and why."""
    if psi is None:
        return False, None, "no position profile given, so the ranked order is kept: set psi="
    if isinstance(psi, str) and psi in ("always", "never"):
        return psi == "always", None, f"psi={psi!r}"
    if profile is None:
        return _by_number(psi)
    measure = "" if profile.measure == "accuracy" else f" by measure {profile.measure!r}"
    when = f" (measured {_published(profile)})" if _published(profile) else ""
    what = f"psi {bound_text(profile.psi)} of {profile.model}{measure}{when}"
    return _exceeds(profile.psi, what)


def _by_number(given: object) -> tuple[bool, float, str]:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ValueError(
            "psi must be a number, a PositionProfile, its path or name, 'always' or 'never', "
            f"got {given!r}"
        )
    psi = float(given)
    if not math.isfinite(psi) or psi < 0:
        raise ValueError(f"psi must be finite and >= 0, got {psi}")
    return _exceeds(psi, f"psi {bound_text(psi)}")


def _exceeds(psi: float, what: str) -> tuple[bool, float, str]:
    opened = psi > THRESHOLD
    relation = "exceeds" if opened else "does not exceed"
    return opened, psi, f"{what} {relation} {THRESHOLD}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
