"""How a profile looks in a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from shared_core.arrays import Scores
from shared_core.cli.console import empty_table
from shared_core.cli.files import ProbeFiles
from shared_core.cli.models import kept_line
from shared_core.comparison.text_report import left_out
from shared_core.evaluation.interim import MOST, bound_text
from shared_core.generation import Generator
from shared_core.generation.responses import empty_lines
from shared_core.placement.order_gate import decide_order, order_gains
from shared_core.sensitivity import PositionProfile, ProbePlan
from shared_core.sensitivity.figure import DEPTHS
from shared_core.sensitivity.position_sensitivity import EPS
from shared_core.sensitivity.records import path_of
from shared_core.wording import counted, is_or_are, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

BAR = 30
"""Columns of a full bar: a step of one is 0.03, and a curve with its figures fits 80 columns."""
LEAST_BAR = 5
"""Columns below which a bar is left out: steps of more than 0.2 hide most differences."""


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
    if plan.left_out:
        unasked = counted(plan.left_out, "question")
        yield f"{unasked} {is_or_are(plan.left_out)} left out to stay within --max-calls."


def parts(profile: PositionProfile, *, width: int) -> Iterator[RenderableType]:
    """Yield what was measured and what it means, in lines of at most `width` columns."""
    if profile.lengths:
        yield lengths_table(profile)
        yield ""
        yield f"k = {profile.k}:"
    yield table(profile, width=width)
    yield ""
    if profile.accuracy is not None:
        yield from verdict_lines(profile)
    for each in profile.by_length:
        at = _at(each, profile)
        if each.k != profile.k and each.accuracy is not None and math.isnan(each.psi):
            yield f"{at}{INCONCLUSIVE}."
        if each.stopped:
            more = "a higher --max-calls" if each.stopped.startswith("max_calls") else "--looks 1"
            yield (
                f"{at}Stopped early: {each.stopped}. That leaves the curve rough; "
                f"{more} asks everything."
            )


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


def table(profile: PositionProfile, *, width: int) -> Table:
    """Return the curve by slot, in at most `width` columns unless its figures need more."""
    built = empty_table()
    curves = [
        (values, _figures(name, values, profile.bands(curve)))
        for name, curve, values in (
            (profile.measure, "accuracy", profile.accuracy),
            ("distraction", "distraction", profile.distraction),
        )
        if values is not None
    ]
    slots = ["slot", *(str(slot + 1) for slot in profile.slots)]
    built.add_column(slots[0], justify="right", no_wrap=True)
    columns = [slots, *(cells for _, figures in curves for cells in figures)]
    # One blank comes before the first column of the table, and one after each.
    left = width - 1 - sum(max(map(len, cells)) + 1 for cells in columns)
    bar = min(BAR // len(curves), left // len(curves) - 1)
    block = "█" if _can_say("█") else "#"
    columns = [slots]
    for values, (shown, spans) in curves:
        built.add_column(shown[0], justify="right", overflow="fold")
        built.add_column(spans[0], overflow="fold")
        columns += [shown, spans]
        if bar >= LEAST_BAR:
            built.add_column("")
            full = max(*values, EPS)
            columns.append(["", *(block * round(bar * value / full) for value in values)])
    for row in zip(*(cells[1:] for cells in columns), strict=True):
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
        index = "" if math.isnan(each.psi) else _shown(each.psi)
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


def _figures(
    name: str, values: Sequence[float], bands: tuple[Scores, Scores] | None
) -> tuple[list[str], list[str]]:
    """Return headings and cells of a curve: its values, and their intervals."""
    spans = [""] * len(values)
    if bands is not None:
        digits = 3 if max(values) < 0.3 else 2
        spans = [f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in zip(*bands, strict=True)]
    return [name, *(f"{value:.3f}" for value in values)], ["95%", *spans]


def _can_say(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def verdict_lines(profile: PositionProfile) -> Iterator[str]:
    """Say what the curve means for the gate."""
    if math.isnan(profile.psi):
        yield (
            f"{INCONCLUSIVE}. Can the model do this task at all? Look at its answers, or try a "
            "higher --max-new-tokens, another --grader, --template or --data, or with a local "
            "model --measure logprob, which needs no right answers."
        )
        return
    if profile.accuracy is not None and min(profile.accuracy) == 1:
        yield (
            "Every answer was right in every slot: the questions are too easy to show a "
            "difference. Raise --k, or give your own questions by --data."
        )
    yield f"Position sensitivity index {_shown(profile.psi)}{_span(profile)}: {_meaning(profile)}"
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
    return f", {profile.confidence:.0%} interval [{_shown(lower)}, {_shown(upper)}]"


def _shown(index: float) -> str:
    # With nothing right in the middle the index measures its `EPS` alone.
    unread = " (the middle is hardly ever read)" if index >= MOST else ""
    return f"{bound_text(index)}{unread}"


def _meaning(profile: PositionProfile) -> str:
    lower, upper = profile.interval or (-math.inf, math.inf)
    if lower > 1:
        return "the edges are read better than the middle."
    if upper < 1:
        return "the middle is read better than the edges."
    asked = counted(profile.n or 0, "question")
    return f"no difference between edges and middle is shown by {asked}."
