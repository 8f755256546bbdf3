"""Arrangement strategies: in which orders the passages of a question are put before the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from shared_core.comparison.by_attention import ByCurve, TwoRounds
from shared_core.comparison.by_distraction import DistractionAware
from shared_core.comparison.by_rank import Placed, Shuffled
from shared_core.comparison.records import BASELINES
from shared_core.comparison.strategy import Strategy, StrategyContext
from shared_core.placement import PLACEMENTS, Placement

DEFAULTS = (*BASELINES, "inverse", "u_shape")
"""The strategies that need to know nothing of the model."""

STRATEGIES: dict[str, Callable[[StrategyContext], Strategy]] = {
    **{name: partial(Placed, placement()) for name, placement in PLACEMENTS.items()},
    "shuffle": Shuffled,
    "attention": ByCurve,
    "two_round": TwoRounds,
    "distraction_aware": DistractionAware,
}
"""Name -> what makes the strategy; that of a placement places, but for the shuffle's."""

AnyStrategy: TypeAlias = str | Placement | Strategy
"""A name in `STRATEGIES`, a placement, or a strategy of the caller's own."""


def strategy_name(spec: AnyStrategy) -> str:
    """Return the name of a strategy, or of a placement as one.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if isinstance(spec, str) and spec not in STRATEGIES:
        raise ValueError(f"no strategy {spec!r}; there are {', '.join(STRATEGIES)}")
    return spec if isinstance(spec, str) else spec.name


def make_strategy(spec: AnyStrategy, context: StrategyContext) -> Strategy:
    """Return the strategy of that name, of a placement, or the caller's own as it is.

    Raises
    ------
    ValueError
        If there is none of that name, or it needs what is not there.
    """
    if isinstance(spec, str):
        return STRATEGIES[strategy_name(spec)](context)
    return Placed(spec, context) if isinstance(spec, Placement) else spec
