"""What a probe leaves behind: one profile a model, joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")


from shared_core import PositionProfile
from shared_core.cli import probe_report as report
from shared_core.cli.files import ProbeFiles

ACCURACY = PositionProfile(
    model="m", identity="m 1", accuracy=(0.9, 0.5, 0.8), n=100, date="2026-01-02T03:04:05+00:00"
)
DISTRACTION = PositionProfile(
    model="m", identity="m 1", distraction=(0.3, 0.1, 0.2), distraction_n=20, measure="distraction"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProbeFiles:
    """Files in a folder of the test's own."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    return ProbeFiles.of("m", output=None, figure=None)


def saved(files: ProbeFiles) -> PositionProfile:
    return PositionProfile.load(files.profile)


@pytest.mark.parametrize("order", [(ACCURACY, DISTRACTION), (DISTRACTION, ACCURACY)])
def test_the_two_curves_of_a_model_are_joined(
    order: tuple[PositionProfile, ...], files: ProbeFiles
) -> None:
    """Whichever was measured first; each keeps its own number of questions."""
    for profile in order:
        files.save(profile)
    found = saved(files)
    assert (found.accuracy, found.n) == ((0.9, 0.5, 0.8), 100)
    assert (found.distraction, found.distraction_n) == ((0.3, 0.1, 0.2), 20)


def test_curves_of_different_things_are_not(files: ProbeFiles) -> None:
    """Another checkpoint, model, context or slots."""
    for other in (
        replace(DISTRACTION, identity="m 2"),
        replace(DISTRACTION, model="other"),
        replace(DISTRACTION, k=5, slots=(0, 2, 4)),
        replace(DISTRACTION, k=4, slots=(0, 1, 3)),
    ):
        files.save(ACCURACY)
        files.save(other)
        assert saved(files).accuracy is None
    assert PositionProfile.load(files.former) == replace(DISTRACTION, identity="m 2")


def test_a_damaged_profile_is_replaced(files: ProbeFiles) -> None:
    """Rather than a probe's result being lost over it."""
    files.profile.write_text("{")
    files.save(ACCURACY)
    assert saved(files) == ACCURACY


def test_a_figure_does_not_overwrite_the_profile(tmp_path: Path) -> None:
    """Nor is a folder taken for a file; both before anything is asked."""
    with pytest.raises(ValueError, match="would overwrite the profile"):
        ProbeFiles.of("m", output=tmp_path / "p.png", figure=None)
    with pytest.raises(ValueError, match="cannot be written: Is a directory"):
        ProbeFiles.of("m", output=tmp_path, figure=tmp_path / "c.png")
    with pytest.raises(ValueError, match=r"one of .*got .*c\.xyz"):
        ProbeFiles.of("m", output=None, figure=tmp_path / "c.xyz")


def test_of_several_lengths_each_tells_what_is_missing() -> None:
    """With its k, and not that of the most passages alone."""
    wrong = PositionProfile(model="m", accuracy=(0.0,) * 4, n=18, failures={"filtered": 2}, empty=3)
    longest = replace(ACCURACY, accuracy=(0.9, 0.5, 0.4, 0.5, 0.8), k=5, slots=())
    several = PositionProfile.of_lengths([longest, replace(wrong, stopped="after 20 questions")])
    told = [*report.parts(several), *report.missing_lines(several)]
    lines = " ".join(line for line in told if isinstance(line, str))
    for line in ("Inconclusive: no", "Stopped early: after", "2 of 20 questions", "3 of 72 ans"):
        assert f"k = {wrong.k}: {line}" in lines
