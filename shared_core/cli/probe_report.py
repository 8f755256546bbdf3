"""How a profile looks in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Scores
from shared_core.cli.console import empty_table
from shared_core.cli.files import ProbeFiles
from shared_core.cli.models import kept_line
from shared_core.comparison.text_report import left_out
from shared_core.evaluation.interim import bound_text
from shared_core.generation import Generator
from shared_core.generation.responses import empty_lines
from shared_core.placement.order_gate import decide_order, order_gains
from shared_core.probe import ProbePlan
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.figure import DEPTHS
from shared_core.sensitivity.position_sensitivity import EPS
from shared_core.sensitivity.records import path_of
from shared_core.wording import counted, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

BAR = 30
"""Columns of a full bar, at most: a curve with its figures fits 80 columns."""


INCONCLUSIVE = (
    "Inconclusive: no answer was right with the passage in the first, the middle or the last slot, "
    "so the index is undefined"
)


def cost_lines(model: Generator, plan: ProbePlan) -> Iterator[str]:
    """Say what the probe is going to cost."""
    about = "about " if plan.estimated else ""
    what = f"{counted(plan.questions, 'question')} in {counted(plan.slots, 'slot')}"
    tokens = counted(plan.prompt_tokens, "prompt token")
    costs = f"at most {counted(plan.calls, 'call')} with {about}{tokens}"
    yield f"{model.name}: {what}, {costs if plan.calls else 'all asked before'}."
    if plan.kept:
        yield kept_line(plan.kept, model)


def parts(profile: PositionProfile) -> Iterator[RenderableType]:
    """Yield what was measured and what it means."""
    if profile.lengths:
        yield lengths_table(profile)
        yield ""
        yield f"k = {profile.k}:"
    yield table(profile)
    yield ""
    if profile.accuracy is not None:
        yield from verdict_lines(profile)
    for each in profile.by_length:
        at = _at(each, profile)
        if each.k != profile.k and each.accuracy is not None and math.isnan(each.psi):
            yield f"{at}{INCONCLUSIVE}."
        if each.stopped:
            yield f"{at}Stopped early: {each.stopped}; --looks 1 asks all questions."


def _at(length: PositionProfile, profile: PositionProfile) -> str:
    """Begin a line about one of several lengths."""
    return f"k = {length.k}: " if profile.lengths else ""


def missing_lines(profile: PositionProfile) -> Iterator[str]:
    """Say how many questions are left out of the profile and why, and how many answers are empty.

    `profile` is as measured, before another curve is joined to it.
    """
    for each in profile.by_length:
        kept, failed = each.n or each.distraction_n or 0, sum(each.failures.values())
        if not failed and not each.empty:
            continue
        yield ""
        if failed:
            yield f"{_at(each, profile)}{left_out(failed, kept + failed, 'the curve')}:"
            for reason, count in sorted(each.failures.items(), key=lambda item: -item[1]):
                yield one_line(f"- {count:,}: {reason}")
        for line in empty_lines(each.empty, kept * len(each.slots)):
            yield f"{_at(each, profile)}{line}"
        yield ""


def file_lines(profile: PositionProfile, files: ProbeFiles) -> Iterator[str]:
    """Say how to use the profile, if at all, and which files were written: lines to copy."""
    if profile.accuracy is not None and not math.isnan(profile.psi):
        known_by = profile.model if files.profile == path_of(profile.model) else files.profile
        yield f'Use it with psi="{known_by}".'
    yield ""
    yield f"profile  {files.profile}"
    yield f"curve    {files.figure}"
    if files.journal.path.exists():  # of attention there are none
        yield f"answers  {files.journal.path}"
    if files.former.exists():
        yield f"former   {files.former}: of another model of this name; --name tells them apart"


def table(profile: PositionProfile) -> Table:
    """Return the curve by slot; bars take what the figures leave of the width."""
    built = empty_table()
    built.add_column("slot", justify="right", no_wrap=True)
    columns: list[Sequence[RenderableType]] = [[str(slot + 1) for slot in profile.slots]]
    for name, curve, values in (
        (profile.measure, "accuracy", profile.accuracy),
        ("distraction", "distraction", profile.distraction),
    ):
        if values is not None:
            built.add_column(name, justify="right", no_wrap=True)
            built.add_column("95%", no_wrap=True)
            built.add_column("", max_width=BAR)
            full = max(*values, EPS)
            bars = [require("rich.bar", extra="eval").Bar(full, 0, value) for value in values]
            shown = [f"{value:.3f}" for value in values]
            columns += [shown, _spans(values, profile.bands(curve)), bars]
    for row in zip(*columns, strict=True):
        built.add_row(*row)
    return built


def lengths_table(profile: PositionProfile) -> Table:
    """Return a row for each number of passages: the curve by depth, the index, the order."""
    built = empty_table()
    for name in ("k", "tokens", "window"):
        built.add_column(name, justify="right", no_wrap=True)
    for depth in np.linspace(0, 1, DEPTHS):
        built.add_column(f"{depth:.0%}", justify="right", no_wrap=True)
    built.add_column("index", justify="right")
    built.add_column("order")
    for each in profile.by_length:
        window = each.tokens and each.window and f"{each.tokens / each.window:.0%}"
        tokens = f"{each.tokens:,.0f}" if each.tokens is not None else ""
        curve = [] if each.accuracy is None else each.accuracy_at(DEPTHS)
        shown = [*(f"{value:.3f}" for value in curve), *[""] * (DEPTHS - len(curve))]
        index = "" if math.isnan(each.psi) else bound_text(each.psi)
        if each.interval is not None:
            index += " [{}, {}]".format(*map(bound_text, each.interval))
        built.add_row(
            str(each.k), tokens, window or "", *shown, index, decide_order(each).placement
        )
    return built


def gains(profile: PositionProfile) -> dict[str, tuple[float, float, float]]:
    """Return what each order is expected to gain, with its bounds; none of what is not known."""
    if profile.accuracy is None or math.isnan(profile.psi):
        return {}
    return {
        each.placement.name: (each.gain, *(each.interval or (each.gain, each.gain)))
        for each in order_gains(profile)
    }


def _spans(values: Sequence[float], bands: tuple[Scores, Scores] | None) -> list[str]:
    if bands is None:
        return [""] * len(values)
    digits = 3 if max(values) < 0.3 else 2
    return [f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in zip(*bands, strict=True)]


def verdict_lines(profile: PositionProfile) -> Iterator[str]:
    """Say what the curve means for the gate."""
    if math.isnan(profile.psi):
        yield (
            f"{INCONCLUSIVE}. Can the model do this task at all? Look at its answers, or try a "
            "higher --max-new-tokens, another --grader, --template or --data, or with a local "
            "model --measure logprob, which needs no right answers."
        )
        return
    index = f"{bound_text(profile.psi)}{_span(profile)}"
    yield f"Position sensitivity index {index}: {_meaning(profile)}"
    orders = gains(profile)
    if orders:
        yield f"Expected of other orders than the ranked one, in points of {profile.outcome}:"
        for name, figures in orders.items():
            gain, low, high = (100 * each for each in figures)
            span = f"  [{low:+.1f}, {high:+.1f}]" if profile.n != 1 else ""
            yield f"  {name:26} {gain:+6.1f}{span}"
    gate = decide_order(profile)
    yield f"Gate: {gate.explain()['gate']}. {gate.reason}."
    by_index = decide_order(profile, rule="psi").explain()["gate"]
    yield f'By the index alone, as in the paper (rule="psi"), it is {by_index}.'


def _span(profile: PositionProfile) -> str:
    if profile.interval is None:
        return ""
    lower, upper = profile.interval
    return f", {profile.confidence:.0%} interval [{bound_text(lower)}, {bound_text(upper)}]"


def _meaning(profile: PositionProfile) -> str:
    lower, upper = profile.interval or (-math.inf, math.inf)
    if lower > 1:
        return "the edges are read better than the middle."
    if upper < 1:
        return "the middle is read better than the edges."
    asked = counted(profile.n or 0, "question")
    return f"no difference between edges and middle is shown by {asked}."
