"""Draw a position profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from shared_core._extras import require
from shared_core.files import in_full
from shared_core.sensitivity.profile import PositionProfile

TICKS = 25
DEPTHS = 5
"""Columns of a heatmap, and about as many slots that are measured of each of several lengths."""
LABELS = {"accuracy": "accuracy", "logprob": "probability of the answer", "attention": "attention"}


Gains: TypeAlias = Mapping[str, tuple[float, float, float]]
"""Order -> its expected gain over the ranked one, and the bounds of that."""


def draw_profile(profile: PositionProfile, path: str | Path, gains: Gains | None = None) -> Path:
    """Draw the curve, and what the orders gain by it, and return the file.

    The curve is by slot, with the bands of `PositionProfile.bands`; of several lengths, a heatmap.

    Parameters
    ----------
    profile
        What to draw: accuracy, distracting effect, or both.
    gains
        Drawn beside it.
    path
        File to write; its suffix says the format (``.png``, ``.svg``, ``.pdf``).

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ValueError
        If the suffix is no known format.
    """
    size = (10 if gains else 7, 4)
    figure: Any = require("matplotlib.figure", extra="eval").Figure(
        size, dpi=150, layout="constrained"
    )
    curve, *beside = figure.subplots(1, 2 if gains else 1, squeeze=False)[0]
    if profile.lengths:
        _draw_lengths(figure, curve, profile)
    else:
        _draw_curve(curve, profile)
    for axes in beside:
        _draw_gains(axes, profile, gains or {})
    figure.suptitle(title(profile), fontsize="medium")
    return write_figure(figure, path)


def _draw_curve(axes: Any, profile: PositionProfile) -> None:
    """Draw accuracy and distracting effect by slot, on an axis that fits them."""
    positions = [slot + 1 for slot in profile.slots]
    label = LABELS.get(profile.measure, "accuracy")
    for curve, name, colour in (
        ("accuracy", label, "tab:blue"),
        ("distraction", "distracting effect", "tab:red"),
    ):
        values, bands = getattr(profile, curve), profile.bands(curve)
        if values is not None:
            axes.plot(positions, values, marker="o", color=colour, label=name)
        if bands is not None:
            axes.fill_between(positions, *bands, color=colour, alpha=0.2, linewidth=0)
    axes.set(xlabel=f"slot of the passage, of {profile.k}", ylabel="mean and 95% band")
    axes.set_xticks(thinned(positions))
    finish_axes(axes)


def _draw_lengths(figure: Any, axes: Any, profile: PositionProfile) -> None:
    """Draw a heatmap: a row for each length, its depths against its own mean."""
    rows = profile.by_length
    means = np.array([row.accuracy_at(DEPTHS) for row in rows])
    moved = means - means.mean(axis=1, keepdims=True)
    most = max(float(np.abs(moved).max()), 1e-9)
    image = axes.imshow(moved, cmap="RdBu", vmin=-most, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(means):
        dark = abs(moved[row, column]) > 0.6 * most
        axes.text(
            column,
            row,
            f"{value:.3f}",
            ha="center",
            va="center",
            color="white" if dark else "black",
        )
    depths = [f"{depth:.0%}" for depth in np.linspace(0, 1, DEPTHS)]
    axes.set_xticks(range(DEPTHS), depths)
    axes.set_yticks(range(len(rows)), [length_label(row) for row in rows])
    axes.set(xlabel="depth of the passage among the passages")
    axes.set_title(LABELS.get(profile.measure, "accuracy"), fontsize="medium")
    figure.colorbar(image, ax=axes, label="less the mean of the row")


def length_label(profile: PositionProfile) -> str:
    """Say how long the prompts of a profile are."""
    words = [f"k = {profile.k}"]
    if profile.tokens is not None:
        words.append(f"{profile.tokens:,.0f} tokens")
        if profile.window is not None:
            words.append(f"{profile.tokens / profile.window:.0%} of the window")
    return "\n".join(words)


def _draw_gains(axes: Any, profile: PositionProfile, gains: Gains) -> None:
    for row, (gain, low, high) in enumerate(gains.values()):
        axes.plot([100 * low, 100 * high], [row, row], color="tab:blue")
        axes.plot([100 * gain], [row], marker="o", color="tab:blue")
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(gains)), [name.replace(" with", "\nwith") for name in gains])
    axes.invert_yaxis()
    axes.set(xlabel=f"points over the ranked order, k = {profile.k}")
    axes.grid(alpha=0.3)


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
    with in_full(target):
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
