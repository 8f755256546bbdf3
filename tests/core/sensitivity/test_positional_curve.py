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
from shared_core.placement.scored import attention_placement
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


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's own curves out of the tests."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


def curve_of(readings: Sequence[npt.ArrayLike], points: int) -> PositionalCurve:
    rows = relative_scores(readings, points)
    return PositionalCurve(model="m", scores=tuple(rows.mean(axis=0)), n=len(rows))


def test_a_reading_counts_in_multiples_of_its_own_mean() -> None:
    """The second has ten times the attention of the first, and weighs no more."""
    rows = relative_scores([[4, 2, 0, 2], [0, 10, 20, 10]], 4)
    assert rows.tolist() == [[2.0, 1.0, 0.0, 1.0], [0.0, 1.0, 2.0, 1.0]]


def test_parts_of_a_reading_are_means_of_what_lies_in_them() -> None:
    """Three tokens in two parts: the middle one is half in each; and one token in three."""
    [halves] = relative_scores([[1.0, 2.0, 3.0]], 2)
    assert halves == pytest.approx((2 / 3, 4 / 3))  # (1 + 2/2) / 1.5 and (2/2 + 3) / 1.5
    [thirds] = relative_scores([[7.0]], 3)
    assert thirds == pytest.approx((1.0, 1.0, 1.0))


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


def test_a_curve_places_another_prompt_in_one_round() -> None:
    """Measured on prompts of 40 and 90 tokens, used on one of 24, by any ranking."""
    u = [(2 * (at + 0.5) / n - 1.2) ** 2 for n in (40, 90) for at in range(n)]
    curve = curve_of([u[:40], u[40:]], 100)
    lengths = [6, 4, 8, 6]
    found = attention_placement([3, 0, 1, 2], curve.scores_for(sum(lengths)), lengths)
    truth = [(2 * (at + 0.5) / 24 - 1.2) ** 2 for at in range(24)]
    assert found == attention_placement([3, 0, 1, 2], np.array(truth), lengths) == (3, 1, 2, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relative_scores([], 2), "no readings"),
        (lambda: relative_scores([[1.0], []], 2), "reading 1 has no att"),
        (lambda: relative_scores([[[1.0]]], 2), r"must have shape \(n,\), got \(1, 1\)"),
        (lambda: relative_scores([[1.0, np.inf]], 2), "must be finite, got inf at position 1"),
        (lambda: PositionalCurve(model="", scores=(1.0,), n=1), "model must be a name, got ''"),
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


def test_a_flat_curve_is_one_whatever_its_parts() -> None:
    """Also one of a single part, or of parts that no tenth has a whole number of."""
    for points in (1, 3, 10, 100):
        curve = PositionalCurve(model="m", scores=(2.0,) * points, n=1)
        assert (curve.start, curve.end, curve.edges) == pytest.approx((1.0, 1.0, 1.0))


def test_a_middle_without_attention_still_gives_numbers() -> None:
    """As of the position sensitivity index, they are huge, not infinite."""
    curve = PositionalCurve(model="m", scores=(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), n=1)
    assert curve.edges > 1e6
    assert np.isfinite(curve.edges)


def test_a_saved_curve_is_found_by_its_models_name(folder: Path) -> None:
    """Beside the profiles, and none of them; kept as plain JSON with a format."""
    saved = MEASURED.save()
    assert saved == PositionalCurve.file_of(MEASURED.model)
    assert saved == folder / "curves" / "org%2Fsome%20model.json"
    data = json.loads(saved.read_text("utf-8"))
    assert (data["format"], data["identity"], data["n"]) == (1, "org/some model 12", 7)
    with pytest.raises(ProfileNotFoundError, match="none is saved yet"):
        PositionProfile.load("org/some model")


def test_a_curve_is_given_as_itself_its_path_or_its_name() -> None:
    """Which is what both adapters take."""
    path = MEASURED.save()
    assert resolve_curve(MEASURED) is MEASURED
    for spec in (path, str(path), "org/some model"):
        assert resolve_curve(spec) == MEASURED


def test_a_curve_that_is_not_there_is_named_with_the_way_out() -> None:
    """Those that are saved are listed."""
    MEASURED.save()
    with pytest.raises(ProfileNotFoundError) as caught:
        resolve_curve("some/other")
    for part in ("'some/other'", "saved: org/some model", "posrag attention MODEL"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "c.json is not a positional curve"),
        ('{"format": 2}', "not a positional curve: it has no format 1"),
        ('{"format": 1, "model": "m"}', "not a positional curve: .*scores"),
        ('{"format": 1, "model": "m", "scores": [1], "n": 1, "intervals": 3}', "c.json is not a"),
    ],
)
def test_a_file_that_is_no_curve_is_named(text: str, message: str, tmp_path: Path) -> None:
    """Rather than placing by something else."""
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        resolve_curve(path)
