"""How small a gain so many questions would show, and how many questions a gain takes."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores


def minimum_detectable_effect(
    differences: npt.ArrayLike, *, n: int | None = None, power: float = 0.8, alpha: float = 0.05
) -> float:
    """Return the smallest mean difference that `n` questions would show with that power.

    By the normal approximation, ``c * s / sqrt(n)`` with s the standard deviation of the observed
    differences and c the sum of the normal quantiles of ``1 - alpha / 2`` and of `power`. Where
    outcomes are 0 and 1, a mean difference e takes a share e of questions that change, so that s
    is then at least ``sqrt(e * (1 - e))``: questions that have hardly ever changed so far do not
    make tiny differences detectable.

    Parameters
    ----------
    differences
        Outcome less that of the baseline by question, shape (m,), in [-1, 1], m >= 2.
    n
        Number of questions, >= 1; as many as there are differences by default.
    power
        Chance to find a difference of that size, in (0, 1).
    alpha
        Level of the two-sided test, in (0, 1). Divide it by the number of arrangements to be on
        the safe side of Holm's correction.

    Returns
    -------
    float
        In outcome units; above 1 means that no difference could be shown.

    Raises
    ------
    ValueError
        If the differences or an option is out of range.
    """
    values = _checked(differences)
    n = len(values) if n is None else n
    if n < 1:
        raise ValueError(f"n must be at least 1 question, got {n}")
    quantiles = _quantiles(power, alpha)
    effect = quantiles * float(values.std(ddof=1)) / math.sqrt(n)
    if _is_all_or_nothing(values):
        effect = max(effect, quantiles**2 / (n + quantiles**2))
    return effect


def questions_needed(
    differences: npt.ArrayLike, effect: float, *, power: float = 0.8, alpha: float = 0.05
) -> int:
    """Return how many questions would show a mean difference of `effect` with that power.

    The inverse of `minimum_detectable_effect`, and at least `fewest_questions`.

    Parameters
    ----------
    differences, power, alpha
        As in `minimum_detectable_effect`.
    effect
        Mean difference to be shown, in (0, 1].

    Raises
    ------
    ValueError
        If the differences, the effect or an option is out of range.
    """
    values = _checked(differences)
    if not 0 < effect <= 1:
        raise ValueError(f"effect must be a difference in (0, 1], got {effect}")
    variance = float(values.var(ddof=1))
    if _is_all_or_nothing(values):
        variance = max(variance, effect * (1 - effect))
    needed = _quantiles(power, alpha) ** 2 * variance / effect**2
    # Rounding must not ask for one question more where the division comes out even.
    return max(fewest_questions(alpha), math.ceil(round(needed, 9)))


def fewest_questions(alpha: float = 0.05) -> int:
    """Return the number of questions below which the test cannot reach `alpha`: 6 at 0.05.

    Even if every one is better, p is ``2 / 2 ** n``.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """
    _quantiles(0.5, alpha)
    return 1 + math.ceil(-math.log2(alpha))


def _checked(differences: npt.ArrayLike) -> Scores:
    values = np.asarray(differences, np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(
            f"differences must be one value for each of at least 2 questions, got shape "
            f"{values.shape}"
        )
    if not (np.abs(values) <= 1).all():
        raise ValueError(f"differences lie in [-1, 1], got {values[~(np.abs(values) <= 1)][0]}")
    return values


def _is_all_or_nothing(differences: Scores) -> bool:
    return bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())


def _quantiles(power: float, alpha: float) -> float:
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value}")
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
