"""Arrangement strategies: the orders in which a model is given the passages of a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from shared_core.checking import check_distinct
from shared_core.comparison.records import BASELINES
from shared_core.comparison.strategies.base import Strategy, StrategyContext
from shared_core.comparison.strategies.by_attention import ByCurve, TwoRounds
from shared_core.comparison.strategies.by_distraction import DistractionAware
from shared_core.comparison.strategies.by_rank import Placed, Shuffled
from shared_core.placement import PLACEMENTS, Placement, Sequential

DEFAULTS = (*BASELINES, "inverse", "u_shape")
"""The strategies that need no knowledge of the model."""

STRATEGIES: dict[str, Callable[[StrategyContext], Strategy]] = {
    **{name: partial(Placed, placement()) for name, placement in PLACEMENTS.items()},
    "shuffle": Shuffled,
    "attention": ByCurve,
    "two_round": TwoRounds,
    "distraction_aware": DistractionAware,
}
"""Name -> factory of the strategy; a placement's name makes a `Placed`, except the shuffle's."""

AnyStrategy: TypeAlias = str | Placement | Strategy
"""A name in `STRATEGIES`, a placement, or a custom strategy."""


def strategy_name(spec: AnyStrategy) -> str:
    """Return the name of a strategy, or of a placement that is used as one.

    Of several names of one placement it is the placement's own.

    Raises
    ------
    ValueError
        If there is no strategy of that name.
    """
    if isinstance(spec, str) and spec not in STRATEGIES:
        raise ValueError(f"no strategy {spec!r}; there are {', '.join(STRATEGIES)}")
    if isinstance(spec, str) and spec in PLACEMENTS:
        return PLACEMENTS[spec].name
    return spec if isinstance(spec, str) else spec.name


def make_strategy(spec: AnyStrategy, context: StrategyContext) -> Strategy:
    """Return a strategy by its name, or made of a placement; a custom strategy stays as it is.

    Raises
    ------
    ValueError
        If there is no strategy of that name, or it needs what is not given.
    """
    if isinstance(spec, str):
        return STRATEGIES[strategy_name(spec)](context)
    return Placed(spec, context) if isinstance(spec, Placement) else spec


def with_baselines(strategies: Sequence[AnyStrategy]) -> tuple[AnyStrategy, ...]:
    """Return the baselines by name, followed by the other strategies.

    Raises
    ------
    ValueError
        If there is no strategy, a name is unknown or occurs twice, or something else has the name
        of a baseline.
    """
    check_distinct("strategies", [*map(strategy_name, strategies)])
    named = [strategy_name(each) if isinstance(each, str) else each for each in strategies]
    others = [each for each in named if each not in (*BASELINES, Sequential())]
    for each in others:
        if (name := strategy_name(each)) in BASELINES:
            raise ValueError(
                f"strategy {name!r} takes part in every comparison as it is, shuffles by its "
                f"seed= and shuffles=; {each!r} cannot replace it: leave it out"
            )
    return (*BASELINES, *others)
