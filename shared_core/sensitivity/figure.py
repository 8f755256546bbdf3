"""Draw a position profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared_core._extras import require
from shared_core.evaluation.intervals import mean_interval
from shared_core.sensitivity.profile import PositionProfile

TICKS = 25
LABELS = {"accuracy": "accuracy", "logprob": "probability of the answer", "attention": "attention"}


def draw_profile(profile: PositionProfile, path: str | Path) -> Path:
    """Draw the curve by slot, with its 95% band where n is known, and return the file.

    The band is pointwise: the Wilson interval of each slot.

    Parameters
    ----------
    profile
        What to draw: accuracy, distracting effect, or both.
    path
        File to write; its suffix says the format (``.png``, ``.svg``, ``.pdf``).

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is no known format.
    """
    figure: Any = require("matplotlib.figure", extra="eval").Figure(figsize=(7, 4), dpi=150)
    axes = figure.add_subplot()
    positions = [slot + 1 for slot in profile.slots]
    curves = (
        (LABELS.get(profile.measure, "accuracy"), profile.accuracy, profile.n, "tab:blue"),
        ("distracting effect", profile.distraction, profile.distraction_n, "tab:red"),
    )
    for label, values, n, colour in curves:
        if values is not None:
            axes.plot(positions, values, marker="o", color=colour, label=label)
            if n is not None and n > 1:
                lower, upper = mean_interval(values, n)
                axes.fill_between(positions, lower, upper, color=colour, alpha=0.2, linewidth=0)
    axes.set(
        title=title(profile),
        xlabel=f"slot of the passage, of {profile.k}",
        ylabel="mean and 95% band",
        ylim=(-0.02, 1.02),
    )
    axes.set_xticks(thinned(positions))
    finish_axes(axes)
    return write_figure(figure, path)


def thinned(positions: Sequence[int]) -> Sequence[int]:
    """Return every n-th position, so that their labels do not overlap."""
    return positions[:: -(-len(positions) // TICKS)]


def finish_axes(axes: Any) -> None:
    """Add grid and legend."""
    axes.grid(alpha=0.3)
    axes.legend(loc="best")


def write_figure(figure: Any, path: str | Path) -> Path:
    """Write a figure, and return the file; its folder is made.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is no known format.
    """
    target = check_figure(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, bbox_inches="tight")
    return target


def check_figure(path: str | Path) -> Path:
    """Return the path of a figure that can be written.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is no known format.
    """
    canvas: Any = require("matplotlib.backends.backend_agg", extra="eval").FigureCanvasAgg
    formats = canvas.get_supported_filetypes()
    target = Path(path)
    if target.suffix.removeprefix(".") not in formats:
        raise ValueError(
            f"a figure is written as one of {', '.join(sorted(formats))}, got {str(path)!r}"
        )
    return target


def title(profile: PositionProfile) -> str:
    """Return model, index and interval in one line."""
    words = [profile.model.replace("$", r"\$")]
    if profile.accuracy is not None:
        words.append(f"position sensitivity {profile.psi:.3f}")
    if profile.interval is not None:
        lower, upper = profile.interval
        words.append(f"{profile.confidence:.0%} [{lower:.3f}, {upper:.3f}]")
    if profile.n is not None:
        words.append(f"n = {profile.n}")
    return ", ".join(words)
