"""The positional curve: what it is made of, its shape, how it is kept and found."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import PositionProfile, ProfileNotFoundError
from shared_core.sensitivity.curve import PositionalCurve, relative_scores, resolve_curve

MEASURED = PositionalCurve(
    model="org/some model",
    scores=(2.0, 0.5, 0.5, 1.0),
    n=7,
    band=((1.5, 2.5), (0.25, 0.75), (0.25, 0.75), (0.5, 1.5)),
    intervals={"start": (3.0, 5.0), "end": (1.0, 3.0), "edges": (2.0, 4.0)},
    k=10,
    template="{context} {question}",
    task="some",
    seed=3,
    date="2026-01-02T03:04:05+00:00",
    versions={"posrag": "0"},
    identity="org/some model 12",
)


pytestmark = pytest.mark.usefixtures("profiles")


def curve_of(readings: Sequence[npt.ArrayLike], points: int) -> PositionalCurve:
    rows = relative_scores(readings, points)
    return PositionalCurve(model="m", scores=tuple(rows.mean(axis=0)), n=len(rows))


def test_a_reading_counts_in_multiples_of_its_own_mean() -> None:
    """The second has ten times the attention of the first, and weighs no more.

    Three tokens in two parts: the middle one is half in each.
    """
    [halves] = relative_scores([[1.0, 2.0, 3.0]], 2)
    assert halves == pytest.approx((2 / 3, 4 / 3))  # (1 + 2/2) / 1.5 and (2/2 + 3) / 1.5
    rows = relative_scores([[4, 2, 0, 2], [0, 10, 20, 10]], 4)
    assert rows.tolist() == [[2.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 1.0]]


def test_a_curve_is_interpolated_between_the_middles_of_its_parts() -> None:
    """Two parts over four tokens: middles at 1/4 and 3/4, tokens at 1/8, 3/8, 5/8 and 7/8."""
    curve = PositionalCurve(model="m", scores=(1.0, 3.0), n=1)
    assert curve.scores_for(4).tolist() == [1.0, 1.5, 2.5, 3.0]
    assert curve.scores_for(2).tolist() == [1.0, 3.0]
    assert curve.scores_for(1).tolist() == [2.0]
    assert curve.scores_for(0).tolist() == []


@given(
    st.lists(st.floats(0.01, 1), min_size=1, max_size=40), st.integers(1, 60), st.integers(1, 90)
)
def test_a_curve_keeps_the_mean_and_the_range(
    reading: list[float], points: int, tokens: int
) -> None:
    """Resampling invents no attention and loses none."""
    curve = curve_of([reading], points)
    assert np.mean(curve.scores) == pytest.approx(1)
    scores, mean = curve.scores_for(tokens), np.mean(reading)
    assert scores.shape == (tokens,)
    assert min(reading) / mean - 1e-9 <= scores.min() <= scores.max() <= max(reading) / mean + 1e-9


@given(st.lists(st.floats(0.1, 1), min_size=1, max_size=20), st.integers(1, 90), st.booleans())
def test_a_symmetric_curve_is_so_to_the_last_bit(half: list[float], n: int, odd: bool) -> None:
    """Or rounding would decide at which end the best document stands."""
    scores = PositionalCurve(model="m", scores=(*half, *half[::-1][odd:]), n=1).scores_for(n)
    assert scores.tolist() == scores[::-1].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relative_scores([[1.0], []], 2), "reading 1 has no att"),
        (lambda: relative_scores([[1.0, np.inf]], 2), "must be finite, got inf at position 1"),
        (lambda: PositionalCurve(model="m", scores=(), n=1), "curve of 'm' has no scores"),
    ],
)
def test_bad_curves_are_refused(call: Callable[[], object], message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("points", [10, 20, 30])
def test_both_ends_are_told_apart_from_one_another(points: int) -> None:
    """The first tenth is 3 times, the last 8 times the middle fifth; what lies between is not."""
    tenths = (3.0, 9.0, 9.0, 9.0, 1.0, 1.0, 9.0, 9.0, 9.0, 8.0)
    curve = PositionalCurve(model="m", scores=np.repeat(tenths, points // 10).tolist(), n=1)
    assert (curve.start, curve.end, curve.edges) == pytest.approx((3.0, 8.0, 5.5))


def test_a_saved_curve_is_found_by_its_models_name(profiles: Path) -> None:
    """Beside the profiles, and none of them; kept as plain JSON with a format."""
    saved = MEASURED.save()
    assert saved == PositionalCurve.file_of(MEASURED.model)
    assert saved == profiles / "curves" / "org%2Fsome%20model.json"
    data = json.loads(saved.read_text("utf-8"))
    assert (data["format"], data["identity"], data["n"]) == (1, "org/some model 12", 7)
    for spec in (MEASURED, saved, str(saved), "org/some model"):
        assert resolve_curve(spec) == MEASURED
    with pytest.raises(ProfileNotFoundError, match=r"'some/other'(?s:.*)saved: org/some model"):
        resolve_curve("some/other")
    with pytest.raises(ProfileNotFoundError, match="none is saved yet"):
        PositionProfile.load("org/some model")
    for text in ('{"format": 2}', '{"format": 1, "model": "m", "scores": [1], "n": 1, "band": 3}'):
        saved.write_text(text)
        with pytest.raises(ValueError, match=r"model\.json is not a positional curve"):
            resolve_curve(saved)
