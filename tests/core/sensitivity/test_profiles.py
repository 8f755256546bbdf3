"""Position profiles: values, files, names, and the index drawn from them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import (
    CAUS,
    PositionProfile,
    ProfileNotFoundError,
)
from shared_core.sensitivity.curve import PositionalCurve

FULL = PositionProfile(
    model="org/Model-7B (q4)",
    accuracy=(0.8, 0.5, 0.6),
    distraction=(0.1, 0.3, 0.2),
    interval=(1.1, 1.7),
    n=50,
    source="posrag probe",
)

accuracies = st.lists(st.floats(0, 1), min_size=1, max_size=15)


pytestmark = pytest.mark.usefixtures("profiles")


def test_a_saved_profile_comes_back_equal(profiles: Path, tmp_path: Path) -> None:
    """By path, str and Path alike; saved without one, by the very name of its model."""
    path = FULL.save(tmp_path / "deep" / "profile.json")
    assert path == tmp_path / "deep" / "profile.json"
    assert PositionProfile.load(path) == PositionProfile.load(str(path)) == FULL
    assert [file.name for file in path.parent.iterdir()] == ["profile.json"]
    assert FULL.save().parent == profiles
    assert PositionProfile.load(FULL.model) == FULL
    with pytest.raises(ProfileNotFoundError):
        PositionProfile.load(FULL.model.replace("/", " "))


def test_measured_values_may_be_arrays() -> None:
    """As a measurement of one's own comes; they are kept as tuples."""
    rows = ((1.0, 0.0, 1.0), (1.0, 1.0, 0.0))
    measured: dict[str, Any] = {"outcomes": np.array(rows), "interval": np.array((1.1, 1.7))}
    profile = PositionProfile(model="m", accuracy=(1.0, 0.5, 0.5), **measured)
    assert (profile.outcomes, profile.interval) == (rows, (1.1, 1.7))
    curve = PositionalCurve(model="m", scores=(1.0, 1.0), n=2, band=np.ones((2, 2)))  # type: ignore[arg-type]
    assert curve.band == ((1.0, 1.0), (1.0, 1.0))


def test_files_of_other_versions_are_read(tmp_path: Path) -> None:
    """Of the first one, with a model and its accuracy alone, and with fields of a later one."""
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"format": 1, "model": "m", "accuracy": [0.9, 0.5], "added": 1}))
    assert PositionProfile.load(path) == PositionProfile(model="m", accuracy=(0.9, 0.5))


def test_an_unknown_name_says_where_it_looked_and_what_is_there(profiles: Path) -> None:
    """With and without saved profiles."""
    with pytest.raises(ProfileNotFoundError, match=r"'nope'.*none is saved yet") as caught:
        PositionProfile.load("nope")
    assert str(profiles) in str(caught.value)
    assert str(caught.value).endswith("`posrag probe MODEL` measures one")
    FULL.save()
    with pytest.raises(ProfileNotFoundError, match=r"saved: .*Model-7B"):
        PositionProfile.load("nope")


@pytest.mark.parametrize("text", ["1.3", " 2", "nan"])
def test_a_number_as_a_text_is_no_name_of_a_profile(text: str) -> None:
    """As it is where it was read from the environment or a file of settings."""
    with pytest.raises(ValueError, match=rf"{text!r} is a text.* give the number"):
        CAUS(psi=text)


@pytest.mark.parametrize(
    "name",
    [pytest.param("x" * 5000, id="long"), pytest.param("nul\0byte", id="nul"), "a/b/c", "..", " "],
)
def test_odd_names_are_just_not_found(name: str) -> None:
    """Too long for a file name, not allowed in one, or a folder."""
    with pytest.raises(ProfileNotFoundError):
        PositionProfile.load(name)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"format": 2, "model": "m", "accuracy": [0.5]}',
        '{"format": 1, "model": "m", "accuracy": [7]}',
        '{"format": 1, "model": "m", "accuracy": [0.5], "interval": 1}',
    ],
)
def test_a_file_that_is_no_profile_is_refused_by_name(text: str, tmp_path: Path) -> None:
    """A ValueError that names the file, whatever is wrong with it."""
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.json is not a position profile"):
        PositionProfile.load(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"accuracy": (0.5, 80.8)}, r"accuracy must lie in \[0, 1\], got 80.8 in slot 1"),
        ({"accuracy": (math.nan,)}, "got nan in slot 0"),
        ({"distraction": (0.1,)}, "distraction has 1 slots, accuracy has 2"),
        ({"k": 5}, "2 values for 5 slots: say which by slots="),
        ({"slots": (4, 0), "k": 5}, r"slots must ascend within 0\.\.4, got \(4, 0\)"),
    ],
)
def test_bad_values_are_refused(fields: dict[str, Any], message: str) -> None:
    """The message names value and slot."""
    with pytest.raises(ValueError, match=message):
        PositionProfile(**{"model": "m", "accuracy": (0.5, 0.6), **fields})


@given(accuracies, st.integers(0, 40))
def test_other_numbers_of_slots_are_interpolated(accuracy: list[float], k: int) -> None:
    """Within the range of what was measured, which is given as it is; edges stay the edges."""
    profile = PositionProfile(model="m", accuracy=tuple(accuracy))
    assert profile.accuracy_at(len(accuracy)) == accuracy
    values = profile.accuracy_at(k)
    assert len(values) == k
    assert all(min(accuracy) <= value <= max(accuracy) for value in values)
    if k > 1:
        assert (values[0], values[-1]) == (accuracy[0], accuracy[-1])


@given(accuracies, st.integers(1, 40), st.booleans())
def test_what_is_symmetric_stays_so_to_the_last_bit(half: list[float], k: int, odd: bool) -> None:
    """Or rounding would decide which of two equal slots is filled first."""
    profile = PositionProfile(model="m", accuracy=(*half, *half[::-1][odd:]))
    values = profile.accuracy_at(k)
    assert values == values[::-1]


def test_interpolation_by_hand() -> None:
    """Linear over the relative position: 3 slots seen as 5, and 5 as 3."""
    three = PositionProfile(model="m", accuracy=(0.8, 0.4, 0.6), distraction=(0.2, 0.4, 0.0))
    assert three.accuracy_at(5) == pytest.approx([0.8, 0.6, 0.4, 0.5, 0.6])
    assert three.distraction_at(5) == pytest.approx([0.2, 0.3, 0.4, 0.2, 0.0])
    five = PositionProfile(model="m", accuracy=(0.8, 0.6, 0.4, 0.5, 0.6))
    assert five.accuracy_at(3) == pytest.approx([0.8, 0.4, 0.6])


def test_distraction_that_was_not_measured_is_refused() -> None:
    """Zeros would be an invention."""
    with pytest.raises(ValueError, match="'m' holds no distracting effect"):
        PositionProfile(model="m", accuracy=(0.5,)).distraction_at(3)
