"""The drawn curve: its file, and what is in it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from shared_core import PositionProfile
from shared_core.sensitivity import draw_profile

PROFILE = PositionProfile(
    model="org/model", accuracy=(0.9, 0.5, 0.8), distraction=(0.2, 0.1, 0.3), n=40, distraction_n=9
)


def test_a_curve_is_drawn_in_the_format_of_the_suffix(tmp_path: Path) -> None:
    """Into a folder that need not be there."""
    assert draw_profile(PROFILE, tmp_path / "a" / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"one of .*png.*c\.docx"):
        draw_profile(PROFILE, tmp_path / "c.docx")
    assert "<svg" in draw_profile(PROFILE, tmp_path / "c.svg").read_text()
    draw_profile(replace(PROFILE, model="a$b_{$", accuracy=(0.0, 0.0, 0.0)), tmp_path / "e.png")


def test_several_lengths_are_a_heatmap(tmp_path: Path) -> None:
    """A row for each, shortest first: its length, and its curve at five depths."""
    short = PositionProfile(model="m", accuracy=(0.75, 0.5, 0.25), tokens=300, window=4000)
    long = PositionProfile(model="m", k=9, slots=(0, 4, 8), accuracy=(0.9, 0.1, 0.9), tokens=900)
    svg = draw_profile(PositionProfile.of_lengths([long, short]), tmp_path / "c.svg").read_text()
    drawn = " ".join(re.findall("<!-- (.*) -->", svg))
    assert "0% 25% 50% 75% 100%" in drawn
    assert "k = 3 300 tokens 8% of the window k = 9 900 tokens" in drawn
    assert "0.750 0.625 0.500 0.375 0.250 0.900 0.500 0.100 0.500 0.900" in drawn
