"""One comparison has one set of figures, from whichever side it is looked at."""

from __future__ import annotations

import random
from dataclasses import replace

from shared_core.comparison import statistics
from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
from shared_core.evaluation.power import questions_needed


def test_the_two_baselines_differ_by_the_same_from_both_sides() -> None:
    """Else 0 might be left out on one side alone."""
    rng = random.Random(0)
    outcomes = {
        name: [[float(rng.random() < 0.5) for _ in range(orders)] for _ in range(20)]
        for name, orders in ((SEQUENTIAL, 1), (SHUFFLE, 3), ("u_shape", 1))
    }
    against = statistics.compared([outcomes], seed=0)[0]
    ours, theirs = against[SEQUENTIAL][SHUFFLE], against[SHUFFLE][SEQUENTIAL]
    assert ours.interval == tuple(-bound for bound in reversed(theirs.interval))
    assert ours.difference == -theirs.difference
    assert replace(ours, interval=theirs.interval, difference=theirs.difference) == theirs
    assert against["u_shape"].keys() == {SEQUENTIAL, SHUFFLE}


def test_no_difference_has_no_sign() -> None:
    """It would be shown as -0.00."""
    same = {name: [[1.0], [0.0]] for name in (SEQUENTIAL, SHUFFLE)}
    against = statistics.compared([same], seed=0)[0]
    for name, baseline in ((SEQUENTIAL, SHUFFLE), (SHUFFLE, SEQUENTIAL)):
        assert f"{against[name][baseline].difference:+.2f}" == "+0.00"


def test_the_questions_needed_are_those_of_the_order_that_needs_most() -> None:
    """By its differences from the ranked order, at the level that is left to each of the tests."""
    right, wrong = [[1.0]] * 20, [[0.0], [1.0]] * 10
    outcomes = {SEQUENTIAL: right, SHUFFLE: right, "inverse": wrong, "u_shape": right}
    needed = questions_needed([-1.0, 0.0] * 10, alpha=0.05 / 5)
    assert statistics.needed(outcomes, 5) == needed > 100
