"""The drawn curve: its file, and what is in it."""

from __future__ import annotations

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
