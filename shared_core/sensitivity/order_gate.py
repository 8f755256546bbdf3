"""The order gate of CAUS (Algorithm 1, line 16): place only for a model that reads its edges best.

The other gate, `shared_core.gating`, decides whether to retrieve at all.
"""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TypeAlias

from shared_core.checking import check_choice
from shared_core.errors import ProfileNotFoundError
from shared_core.evaluation.interim import bound_text
from shared_core.sensitivity.profile import PositionProfile
from shared_core.types import Evidence, OrderDecision

Psi: TypeAlias = float | PositionProfile | str | Path | None
"""A position sensitivity index, a profile, its path or name, ``"always"`` or ``"never"``."""

THRESHOLD = 1.0
"""Index of a model that reads the edges and the middle equally well."""


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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def decide_order(psi: Psi, *, evidence: Evidence = "point", k: int | None = None) -> OrderDecision:
    """Decide whether the passages are to be placed or left in ranked order.

    The order gate opens when the position sensitivity index exceeds 1.0 (CAUS, section III-D).
    There the index is of accuracy; if a profile is of another `PositionProfile.measure`, the reason
    names it.

    Parameters
    ----------
    psi
        The index (finite, >= 0), a `PositionProfile`, the path or name of a saved one,
        ``"always"`` or ``"never"``. None: nothing is known of the model, and the gate does not
        guess; it stays shut.
    evidence
        ``"point"``: the index itself must exceed the threshold. ``"interval"``: the lower bound
        of the profile's interval must; without an interval the gate stays shut.
    k
        Number of passages to be placed, if known. If a profile was measured with another number,
        its curve is interpolated and the reason says so.

    Raises
    ------
    ValueError
        If `psi` is a negative or non-finite number or something else, or `evidence` is unknown.
    ProfileNotFoundError
        If `psi` names a profile that is not there.
    """
    check_choice(evidence, "evidence", Evidence)
    if psi is None:
        reason = "no position profile given, so the ranked order is kept: set psi="
        return OrderDecision(False, None, reason)
    if isinstance(psi, str) and psi in ("always", "never"):
        return OrderDecision(psi == "always", None, f"psi={psi!r}")
    profile = profile_of(psi)
    if profile is None:
        return _by_number(psi, evidence)
    decision = _by_profile(profile, evidence)
    if k is None or k == profile.k:
        return decision
    measured = f"measured with {profile.k} passages, interpolated to {k}"
    return replace(decision, reason=f"{decision.reason} ({measured})")


def _by_number(given: object, evidence: Evidence) -> OrderDecision:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ValueError(
            "psi must be a number, a PositionProfile, its path or name, 'always' or 'never', "
            f"got {given!r}"
        )
    psi = float(given)
    if not math.isfinite(psi) or psi < 0:
        raise ValueError(f"psi must be finite and >= 0, got {psi}")
    what = f"psi {bound_text(psi)}"
    if evidence == "interval":
        what = f"{what} is a bare number without the interval that is asked for"
        return OrderDecision(False, psi, what)
    return _compare(psi, psi, what)


def _by_profile(profile: PositionProfile, evidence: Evidence) -> OrderDecision:
    psi, whose = profile.psi, f"the profile of {profile.model}"
    if profile.accuracy is None:
        return OrderDecision(False, None, f"{whose} holds no accuracy, so it has no psi")
    if math.isnan(psi):
        return OrderDecision(False, None, f"{whose} is inconclusive: no slot was read")
    measure = "" if profile.measure == "accuracy" else f" by measure {profile.measure!r}"
    what = f"psi {bound_text(psi)} of {profile.model}{measure}"
    if evidence == "point":
        return _compare(psi, psi, what)
    if profile.interval is None:
        return OrderDecision(False, psi, f"{whose} holds no interval, and one is asked for")
    lower = profile.interval[0]
    return _compare(psi, lower, f"lower bound {bound_text(lower)} of {what}")


def _compare(psi: float, evidence: float, what: str) -> OrderDecision:
    opened = evidence > THRESHOLD
    relation = "exceeds" if opened else "does not exceed"
    return OrderDecision(opened, psi, f"{what} {relation} {THRESHOLD}")
