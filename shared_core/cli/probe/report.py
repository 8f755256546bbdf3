"""How a profile looks in a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shared_core._extras import require
from shared_core.cli.probe.files import ProbeFiles
from shared_core.evaluation import mean_interval
from shared_core.sensitivity import PositionProfile, ProbePlan, decide
from shared_core.types import GateDecision

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

BAR = 30


def cost_lines(model: str, plan: ProbePlan) -> Iterator[str]:
    """Say what the probe is going to cost."""
    about = "about " if plan.estimated else ""
    yield (
        f"{model}: {plan.questions:,} questions in {plan.slots} slots, at most {plan.calls:,} "
        f"calls with {about}{plan.prompt_tokens:,} prompt tokens."
    )
    if plan.kept:
        yield f"{plan.kept:,} answers are kept from before and not asked again (--fresh does)."
    if plan.left_out:
        yield f"{plan.left_out:,} questions are left out to stay within --max-calls."


def parts(profile: PositionProfile, files: ProbeFiles) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    yield table(profile)
    yield ""
    if profile.accuracy is not None:
        yield from verdict_lines(profile)
    if profile.stopped:
        yield f"Stopped early: {profile.stopped}."
    yield ""
    yield f"profile  {files.profile}"
    yield f"curve    {files.figure}"


def table(profile: PositionProfile) -> Table:
    """Return the curve, slot by slot."""
    built: Table = require("rich.table", extra="eval").Table(
        box=require("rich.box", extra="eval").SIMPLE_HEAD, padding=0
    )
    built.add_column("slot", justify="right")
    columns = []
    for name, values in ((profile.measure, profile.accuracy), ("distraction", profile.distraction)):
        if values is not None:
            columns.append(_cells(values, profile.n))
            for heading, side in ((name, "right"), ("95%", "left"), ("", "left")):
                built.add_column(heading, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for row, slot in enumerate(profile.slots):
        built.add_row(str(slot + 1), *(cell for column in columns for cell in column[row]))
    return built


def _cells(values: Sequence[float], n: int | None) -> list[tuple[str, str, str]]:
    spans = [""] * len(values)
    if n is not None and n > 1:
        bounds = zip(*mean_interval(values, n), strict=True)
        spans = [f"[{low:.2f}, {high:.2f}]" for low, high in bounds]
    return [
        (f"{value:.3f}", span, "█" * round(BAR * value))
        for value, span in zip(values, spans, strict=True)
    ]


def verdict_lines(profile: PositionProfile) -> Iterator[str]:
    """Say what the curve means for the gate."""
    if math.isnan(profile.psi):
        yield (
            "Inconclusive: no answer was right with the passage in the first, the middle or the "
            "last slot, so the index is undefined. Can the model do this task at all? Look at its "
            "answers, or try another --grader, --template or --data."
        )
        return
    yield f"Position sensitivity index {profile.psi:.3f}{_span(profile)}: {_meaning(profile)}"
    yield f"Gate: {_state(decide(profile))} by the index, " + (
        f'{_state(decide(profile, evidence="interval"))} with evidence="interval".'
    )
    yield f'Use it with psi="{profile.model}".'


def _span(profile: PositionProfile) -> str:
    if profile.interval is None:
        return ""
    lower, upper = profile.interval
    return f", {profile.confidence:.0%} interval [{lower:.3f}, {upper:.3f}]"


def _meaning(profile: PositionProfile) -> str:
    lower, upper = profile.interval or (-math.inf, math.inf)
    if lower > 1:
        return "the edges are read better than the middle."
    if upper < 1:
        return "the middle is read better than the edges."
    return f"no difference between edges and middle is shown by {profile.n} questions."


def _state(decision: GateDecision) -> str:
    return "open" if decision.opened else "shut"
