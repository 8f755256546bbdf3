"""The strategies that always take part, and those that are compared with them."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.checking import check_distinct
from shared_core.comparison.records import BASELINES
from shared_core.comparison.strategies import AnyStrategy, strategy_name
from shared_core.placement import Sequential


def with_baselines(strategies: Sequence[AnyStrategy]) -> tuple[AnyStrategy, ...]:
    """Return the baselines by name, and behind them the other strategies.

    Raises
    ------
    ValueError
        If there is no strategy, or one of an unknown name, or a name is there twice, or something
        else has the name of a baseline.
    """
    check_distinct("strategies", [*map(strategy_name, strategies)])
    others = [each for each in strategies if each not in (*BASELINES, Sequential())]
    for each in others:
        if (name := strategy_name(each)) in BASELINES:
            raise ValueError(
                f"strategy {name!r} takes part in every comparison as it is, shuffles by its "
                f"seed= and shuffles=; {each!r} cannot stand for it: leave it out"
            )
    return (*BASELINES, *others)
