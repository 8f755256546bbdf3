"""Tables 1 to 4 of PositionalBias: in a terminal, the paper's figures below ours, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shared_core.cli.reproduce import failing
from shared_core.cli.reproduce.controlled import GRADER, HARD_SLOTS, Controlled, K
from shared_core.cli.reproduce.positional_bias import PositionalBiasResult
from shared_core.cli.reproduce.published import (
    BY_MODEL,
    BY_RETRIEVER,
    DEPTHS,
    SLOTS,
    STRATEGIES,
    WITH_HARD,
    PaperRows,
)
from shared_core.cli.reproduce.tables import HERE, grid, measured, paper_rows, two_rows
from shared_core.comparison import Failure, SettingResult
from shared_core.comparison.text_report import failure_lines
from shared_core.evaluation import paired_difference_interval
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

NO_MODEL = (
    "No model was asked (--model): Tables 1 to 3 and the distracting effect need one, so only "
    "what concerns relevance is measured."
)
RELEVANCE_FOOTNOTE = (
    "In percent, with 95% intervals over the questions that have passages marked as gold in the "
    "data."
)
NOT_REACHED = "-: deeper than any ranking of that pipeline."
FOOTNOTE = (
    "In percent, with 95% intervals over questions. An answer is right if it contains an accepted "
    "one; in the paper another model judges it. Tables 1 and 4 treat the passages marked as gold "
    "in the data as the relevant ones, and use only questions that have some. Table 1 and the "
    "profile behind MaxRel and MinDist use the first half of the questions, Tables 2 and 3 the "
    "second. p: within-question permutation test against Shuffle, the mean of 3 orders, not "
    'corrected. Rows that begin with "paper" are its results on other questions and passages.'
)


def parts(found: PositionalBiasResult, label: str) -> Iterator[RenderableType]:
    """Yield the parts of the report; `label` is what the model is called."""
    if found.compared is None:
        yield NO_MODEL
    else:
        yield f"\nTable 1: accuracy by slot of the relevant passage ({label}, {found.pipelines[0]})"
        if found.controlled is None:
            yield (
                "Not measured: no question of the first half has a retrieved relevant passage and "
                "four weak distractors. MaxRel and MinDist need it."
            )
        else:
            yield _slots(found.controlled)
            yield from _harm(found.controlled)
            yield from _failures(found.controlled.failures, found.ids, "Table 1")
        first, *_ = found.compared.settings
        yield f"\nTable 2: accuracy by strategy, k = 5 ({label}, {first.pipeline})"
        yield _strategies([(HERE, first)], BY_MODEL)
        yield f"\nTable 3: accuracy by retrieval and strategy, k = 5 ({label})"
        yield _strategies([(each.pipeline, each) for each in found.compared.settings], BY_RETRIEVER)
        for setting in found.compared.settings:
            ids = [each.id for each in found.compared.questions]
            yield from _failures(setting.failures, ids, f"Tables 2 and 3, {setting.name}")
        yield "\nTable 4: questions with a hard distractor in the top k"
        yield _depths(found, "Hard", WITH_HARD)
    outcomes = [values for each in found.measures.values() for values in each.values()]
    judged = counted(len(outcomes[0]), "question")
    yield f"\nFigure 1: the top k of {judged} (the paper's figures are drawn)"
    for measure in ("HITS", "Precision", "MaxDE", "MeanDE"):
        if any(name.startswith(measure) for each in found.measures.values() for name in each):
            yield _depths(found, measure, {})
    if len({frozenset(each) for each in found.measures.values()}) > 1:
        yield NOT_REACHED
    yield from _failures(found.left_out, found.ids, "Tables 1 and 4 and Figure 1")
    yield RELEVANCE_FOOTNOTE if found.compared is None else FOOTNOTE


def _failures(failures: Sequence[Failure], ids: Sequence[str], where: str) -> Iterator[str]:
    return filter(None, failure_lines(failures, ids, where))


def _slots(controlled: Controlled) -> Table:
    rows = []
    for name, values in controlled.outcomes.items():
        rows += two_rows(f"{name}, n = {len(values)}", [*values.T])
    return grid(["hard distractor", *map(str, range(1, K + 1))], [*rows, *paper_rows(SLOTS)])


def _harm(controlled: Controlled) -> Iterator[str]:
    """Say what a hard distractor costs on the same questions and slots."""
    if len(controlled.outcomes) == 1:
        yield (
            "No question has a hard distractor (effect above 0.8), so there is no row with one, "
            "and MinDist has nothing to go by."
        )
        return
    if len(controlled.with_hard) < 2:
        return
    alone = controlled.outcomes["None"][list(controlled.with_hard)]
    for name, slot in HARD_SLOTS.items():
        both = [
            np.delete(values, slot, axis=1).mean(axis=1)
            for values in (controlled.outcomes[name], alone)
        ]
        lower, upper = paired_difference_interval(*both)
        paper = np.delete(np.array(SLOTS[name]) - SLOTS["None"], slot).mean()
        yield (
            f"{name}: {100 * (both[0] - both[1]).mean():+.1f} points [{100 * lower:+.1f}, "
            f"{100 * upper:+.1f}] against None, same questions and slots; paper {paper:+.1f}."
        )


def _strategies(settings: Sequence[tuple[str, SettingResult]], paper: PaperRows) -> Table:
    rows = []
    for name, setting in settings:
        known = {each.name: each for each in setting.strategies}
        rows += two_rows(
            name,
            [
                np.array(known[each].outcomes[GRADER]) if each in known else None
                for each in STRATEGIES
            ],
        )
        tests = [known[each].against.get("shuffle") if each in known else None
                 for each in STRATEGIES]  # fmt: skip
        rows.append(["  p", *("" if test is None else f"{test.p_value:.2g}" for test in tests)])
    return grid(["", *STRATEGIES.values()], [*rows, *paper_rows(paper)])


def _depths(found: PositionalBiasResult, measure: str, paper: PaperRows) -> Table:
    rows = []
    depths = [
        k for k in DEPTHS if any(f"{measure}@{k}" in each for each in found.measures.values())
    ]
    for name in found.pipelines:
        columns = [found.measures[name].get(f"{measure}@{k}") for k in depths]
        rows += two_rows(name, columns, decimals=1)
    shown = {name: values[: len(depths)] for name, values in paper.items()}
    return grid([measure, *(f"k = {k}" for k in depths)], [*rows, *paper_rows(shown)])


def as_json(found: PositionalBiasResult, **settings: object) -> dict[str, Any]:
    """Return the settings and every outcome; slots count from 1."""
    return {
        "experiment": "positionalbias",
        **settings,
        "pipelines": list(found.pipelines),
        "failures": failing.as_json(found.left_out, found.ids),
        "table_1": None if found.controlled is None else _table_1(found.controlled, found.ids),
        "tables_2_and_3": None if found.compared is None else json.loads(found.compared.to_json()),
        "table_4": {
            name: {measure: measured(values) for measure, values in each.items()}
            for name, each in found.measures.items()
        },
        "published_percent": {
            "table_1": {name: [_or_none(value) for value in row] for name, row in SLOTS.items()},
            "table_2": BY_MODEL,
            "table_3": BY_RETRIEVER,
            "table_4": WITH_HARD,
        },
    }


def _table_1(controlled: Controlled, ids: Sequence[str]) -> dict[str, Any]:
    return {
        "failures": failing.as_json(controlled.failures, ids),
        "with_hard": list(controlled.with_hard),
        "distraction": controlled.profile.distraction,
        "rows": {
            name: {
                str(slot + 1): measured(values[:, slot])
                for slot in range(values.shape[1])
                if not np.isnan(values[:, slot]).any()
            }
            for name, values in controlled.outcomes.items()
        },
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value
