"""The checks that every part of the core makes of its arguments."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from shared_core.checking import check_choice, check_count, check_counts_of

Colour = Literal["red", "green", "blue"]


@dataclass(frozen=True, slots=True)
class Options:
    """What is checked."""

    k: int = 3
    seed: int = 0
    size: int | None = None


@pytest.mark.parametrize("value", [0, -1, 2.0, 2.5, True, "3", None, [1], float("nan")])
def test_what_counts_nothing_is_refused(value: object) -> None:
    """A float and a truth value among them, which Python would take."""
    with pytest.raises(ValueError, match=r"depth must be an integer >= 1, got "):
        check_count(value, "depth")  # type: ignore[arg-type]


def test_a_count_may_be_numpys_and_of_any_size() -> None:
    """It comes back as an ``int`` that the kernels can hold."""
    assert type(check_count(np.int32(7), "k")) is int
    assert check_count(2**70, "k") == sys.maxsize
    assert check_count(0, "seed", 0) == 0
    with pytest.raises(ValueError, match="k must be an integer >= 3, got 2"):
        check_count(2, "k", 3)


def test_counts_of_options_become_plain_ones_of_the_same_value() -> None:
    """JSON knows no others, and another seed would draw another order."""
    options = Options(k=np.int64(4), seed=2**70)  # type: ignore[arg-type]
    check_counts_of(options, {"k": 1, "seed": 0})
    assert type(options.k) is int
    assert options == Options(k=4, seed=2**70)
    check_counts_of(options, {"size": 1}, optional=True)
    with pytest.raises(ValueError, match="size must be an integer >= 1, got None"):
        check_counts_of(options, {"size": 1})
    with pytest.raises(ValueError, match="k must be an integer >= 5, got 4"):
        check_counts_of(options, {"k": 5}, optional=True)


@pytest.mark.parametrize("value", ["pink", "", None, 1, ["red"], np.array(["red", "blue"])])
def test_what_is_no_choice_is_refused(value: object) -> None:
    """The message lists what is."""
    with pytest.raises(ValueError, match="colour must be 'red', 'green' or 'blue', got "):
        check_choice(value, "colour", Colour)
    assert check_choice("blue", "colour", Colour) == "blue"
