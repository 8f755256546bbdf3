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
    assert "<svg" in draw_profile(PROFILE, tmp_path / "c.svg").read_text()
    draw_profile(PositionProfile.load("mosaicml/mpt-30b-instruct#key-value"), tmp_path / "d.png")
    draw_profile(replace(PROFILE, model="a$b_{$", accuracy=(0.0, 0.0, 0.0)), tmp_path / "e.png")


def test_both_curves_and_their_bands_are_in_it(tmp_path: Path) -> None:
    """One band a curve, where the number of questions is known."""

    def bands(profile: PositionProfile) -> int:
        return draw_profile(profile, tmp_path / "c.svg").read_text().count("fill-opacity: 0.2")

    assert bands(PROFILE) == 2
    assert bands(replace(PROFILE, distraction_n=None)) == 1
    assert bands(PositionProfile(model="m", accuracy=(0.9, 0.5, 0.8), n=40)) == 1
    assert bands(PositionProfile(model="m", accuracy=(0.9, 0.5, 0.8))) == 0
    assert bands(PositionProfile(model="m", accuracy=(1.0, 0.0, 1.0), n=1)) == 0


def test_an_unknown_format_is_named(tmp_path: Path) -> None:
    """By the suffix."""
    for name in ("c.docx", "c"):
        with pytest.raises(ValueError, match=f"one of .*png.*{name}"):
            draw_profile(PROFILE, tmp_path / name)
    assert not list(tmp_path.iterdir())
