"""How small a gain so many questions would show, and how many questions a gain takes.

By the normal approximation, with two bounds from below. Questions that have hardly ever changed
so far do not make tiny differences detectable: a mean difference of e is made of changes of a
typical size m (`typical_change`), which a share ``e / m`` of questions take, so that

- differences vary by ``e * m - e ** 2`` or more in the square, and
- of n questions, ``n * e / m`` on average change, of which no test reaches its level unless
  `fewest_questions` do.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from shared_core.checking import check_count, check_fractions
from shared_core.evaluation.changes import question_means, typical_change


def minimum_detectable_effect(
    differences: npt.ArrayLike,
    *,
    n: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """Return the smallest mean difference that `n` questions would show with that power.

    The largest of ``c * s / sqrt(n)``, with s the standard deviation of the observed differences
    and c the sum of the normal quantiles of ``1 - alpha / 2`` and of `power`;
    ``m * c ** 2 / (n + c ** 2)``, where s is at its lower bound; and ``m * q``, where enough
    questions change with that chance if each does with the chance q.

    Parameters
    ----------
    differences
        Outcome less that of the baseline by question, shape (m,), in [-1, 1], m >= 2; or, of
        several orders, shape (m, differences of a question), as `order_differences` gives them.
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
    observed, spread, change = _observed(differences)
    n = observed if n is None else check_count(n, "n")
    quantiles, fewest = _quantiles(power, alpha), fewest_questions(alpha)
    effect = quantiles * spread / math.sqrt(n)
    if n < fewest:
        return max(effect, fewest / n)
    share = max(quantiles**2 / (n + quantiles**2), _share_that_changes(n, fewest, power))
    return max(effect, change * share)


def questions_needed(
    differences: npt.ArrayLike,
    effect: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
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
    _, spread, change = _observed(differences)
    if not 0 < effect <= 1:
        raise ValueError(f"effect must be a difference in (0, 1], got {effect}")
    quantiles, fewest = _quantiles(power, alpha), fewest_questions(alpha)
    variance = max(spread**2, effect * change - effect**2)
    needed = max(
        quantiles**2 * variance / effect**2,
        _questions_to_change(min(1.0, effect / change), fewest, power),
    )
    # Rounding must not ask for one question more where the division comes out even.
    return max(fewest, math.ceil(round(needed, 9)))


def fewest_questions(alpha: float = 0.05) -> int:
    """Return the number of changes below which no test of two orders reaches `alpha`: 6 at 0.05.

    Even if every one is for the better, p is ``2 / 2 ** n``, by Wilcoxon's test and by permutation.
    It takes fewer against the mean of several orders.

    Raises
    ------
    ValueError
        If `alpha` is out of range.
    """
    _quantiles(0.5, alpha)
    return 1 + math.ceil(-math.log2(alpha))


def _share_that_changes(n: int, fewest: int, power: float) -> float:
    """Return the chance of a change with which `fewest` of n questions change at that power.

    The binomial quantile by its normal approximation, solved as for Wilson's interval.
    """
    z, count = NormalDist().inv_cdf(power), fewest - 0.5
    root = math.sqrt(count * (1 - count / n) + z**2 / 4)
    return (count + z**2 / 2 + z * root) / (n + z**2)


def _questions_to_change(share: float, fewest: int, power: float) -> float:
    """Return the n of which `share` is the `_share_that_changes`."""
    z, count = NormalDist().inv_cdf(power), fewest - 0.5
    half = z * math.sqrt(1 - share)
    return ((half + math.sqrt(half**2 + 4 * count)) / 2) ** 2 / share


def _observed(differences: npt.ArrayLike) -> tuple[int, float, float]:
    """Return the number of differences, their standard deviation, and their typical change."""
    values = np.asarray(differences, np.float64)
    rows = values[:, None] if values.ndim == 1 else values
    if rows.ndim != 2 or len(rows) < 2 or np.isnan(rows).all(axis=1).any():
        raise ValueError(
            "differences must be one value or several for each of at least 2 questions, got "
            f"shape {values.shape}"
        )
    if (outside := np.abs(rows) > 1).any():
        raise ValueError(f"differences lie in [-1, 1], got {rows[outside][0]}")
    return len(rows), float(question_means(rows).std(ddof=1)), typical_change(rows)


def _quantiles(power: float, alpha: float) -> float:
    check_fractions({"power": power, "alpha": alpha})
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
