"""Plots of means and differences, each with its interval, one under the other.

Positions are in per cent of the width, heights in pixels: a plot is as wide as the page allows,
and its text keeps its size on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from shared_core.comparison.records import BASELINES, SettingResult, StrategyResult
from shared_core.comparison.report.html.elements import Attributes, Child, element, paragraph
from shared_core.comparison.report.html.scale import OUTCOMES, Scale
from shared_core.comparison.report.markdown import estimate_text
from shared_core.evaluation.significance import PairedComparison

ROW, BASE, BELOW, MIDDLE, AXIS = 44, 15, 20, 30, 24
"""Height of a row; where in it the text is, ends, and the interval is; height of the axis; px."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A mean with its interval.

    Attributes
    ----------
    label, text
        Its name, and its figures.
    mean, interval
        Where it is drawn.
    kind
        Its class: ``"better"``, ``"worse"`` and ``"plain"`` are filled, ``"open"`` is hollow.
    band
        Half the width of a band around 0, if there is one.
    """

    label: str
    text: str
    mean: float
    interval: tuple[float, float] | None
    kind: str = "plain"
    band: float = 0.0


def gain_scale(settings: Iterable[SettingResult]) -> Scale:
    """Return the axis on which the gains of all settings can be compared."""
    gains = [gain for setting in settings for _, gain in _gains(setting)]
    return Scale.around(bound for gain in gains for bound in (*gain.interval, gain.difference))


def gain_plot(setting: SettingResult, scale: Scale, *, name: str, level: float) -> Element:
    """Return the forest plot of one setting: what each strategy gains over the ranked order."""
    rows = [
        Row(
            label=strategy.name,
            text=signed(gain),
            mean=gain.difference,
            interval=gain.interval,
            kind=_kind(gain, level),
            band=gain.detectable,
        )
        for strategy, gain in _gains(setting)
    ]
    if not rows:
        return paragraph("There is no difference to show.", "note")
    title = f"Gain over the ranked order: {setting.name}"
    return _plot(
        rows, scale, name=name, title=title, tick=lambda value: f"{value:+.2g}"[value == 0 :]
    )


def accuracy_plot(setting: SettingResult, *, name: str, grader: str) -> Element:
    """Return the plot of how right each strategy was."""
    means = [(each.name, each.estimates.get(grader)) for each in setting.strategies]
    rows = [
        Row(label=label, text=estimate_text(mean), mean=mean.mean, interval=mean.interval)
        for label, mean in means
        if mean is not None
    ]
    if not rows:
        return paragraph("No question was answered.", "note")
    title = f"Mean {grader} by strategy: {setting.name}"
    return _plot(rows, OUTCOMES, name=name, title=title, tick=lambda value: f"{value:g}")


def signed(comparison: PairedComparison) -> str:
    """Return a difference with its interval, as ``+0.10 [+0.04, +0.16]``."""
    lower, upper = comparison.interval
    return f"{comparison.difference:+.2f} [{lower:+.2f}, {upper:+.2f}]"


def drawing(height: int, *parts: Child, name: str, title: str, description: str) -> Element:
    """Return a drawing as wide as its parent, with a title and a description."""
    heads = (
        element("title", {"id": f"{name}-title"}, title),
        element("desc", {"id": f"{name}-desc"}, description),
    )
    attributes: Attributes = {"role": "img", "width": "100%", "height": height}
    return element(
        "svg", {**attributes, "aria-labelledby": f"{name}-title {name}-desc"}, *heads, *parts
    )


def text_at(x: str, y: int, kind: str, text: str) -> Element:
    """Return text in a drawing."""
    return element("text", {"x": x, "y": y, "class": kind}, text)


def _gains(setting: SettingResult) -> list[tuple[StrategyResult, PairedComparison]]:
    sequential = BASELINES[0]
    return [
        (strategy, strategy.against[sequential])
        for strategy in setting.strategies
        if sequential in strategy.against
    ]


def _kind(gain: PairedComparison, level: float) -> str:
    lower, upper = gain.interval
    if gain.adjusted > level or lower <= 0 <= upper:
        return "open"
    return "better" if lower > 0 else "worse"


def _plot(
    rows: Sequence[Row], scale: Scale, *, name: str, title: str, tick: Callable[[float], str]
) -> Element:
    bottom = len(rows) * ROW
    parts = [_band(row, scale, number * ROW) for number, row in enumerate(rows) if row.band]
    parts += _axis(scale, bottom, tick)
    for number, row in enumerate(rows):
        parts.append(element("g", {"class": row.kind}, *_row(row, scale, number * ROW)))
    description = "; ".join(f"{row.label} {row.text}" for row in rows)
    return drawing(bottom + AXIS, *parts, name=name, title=title, description=description)


def _axis(scale: Scale, bottom: int, tick: Callable[[float], str]) -> Iterable[Element]:
    for value in scale.ticks:
        x = scale.at(value)
        kind = "zero" if value == 0 and scale.lower < 0 else "grid"
        line: Attributes = {"x1": x, "x2": x, "y1": BELOW, "y2": bottom, "class": kind}
        # Interrupted where a row has its text.
        yield element("line", {**line, "stroke-dasharray": f"{ROW - BELOW} {BELOW}"})
        yield text_at(x, bottom + BASE, "tick", tick(value))


def _band(row: Row, scale: Scale, top: int) -> Element:
    width = scale.width(-row.band, row.band)
    y = top + MIDDLE - 6
    place: Attributes = {"x": scale.at(-row.band), "width": width, "y": y, "height": 12}
    return element("rect", {**place, "class": "band"})


def _row(row: Row, scale: Scale, top: int) -> Iterable[Element]:
    y = top + MIDDLE
    if row.interval is not None:
        lower, upper = row.interval
        ends: Attributes = {"x1": scale.at(lower), "x2": scale.at(upper), "y1": y, "y2": y}
        yield element("line", {**ends, "class": "interval"})
    yield element("circle", {"cx": scale.at(row.mean), "cy": y, "r": 5, "class": "mean"})
    yield text_at("0", top + BASE, "label", row.label)
    yield text_at("100%", top + BASE, "figures", row.text)
