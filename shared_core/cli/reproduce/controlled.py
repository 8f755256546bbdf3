"""PositionalBias, section 4: one relevant passage, rotated among distractors of known effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from shared_core.arrays import Scores
from shared_core.cli.reproduce import tables
from shared_core.cli.reproduce.tables import Outcomes, Parts
from shared_core.evaluation import GRADERS, grade, paired_difference_interval
from shared_core.generation.responses import Request, Response
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import PositionProfile, ProbeQuestion, distractor_kind
from shared_core.sensitivity.distraction import abstention_request, effect_of

K = 5
"""Passages in the prompt."""

HARD_SLOTS = {"Position 3": 2, "Position 5": 4}
"""Slot of the hard distractor, by the name of the row."""

EFFECT = "effect"
"""In the place of a row: the hard distractor moves instead of the relevant passage."""

GRADER = "subspan"
"""An accepted answer occurs in the model's; the papers do the same, or ask a model."""

Judged: TypeAlias = Sequence[tuple[str, bool]]
"""Passages, the best ranked first, and whether each is relevant."""

Cell: TypeAlias = tuple[str, int]
"""Row and slot."""

Answered: TypeAlias = tuple[ProbeQuestion, Mapping[Cell, Response]]
"""A question, and what a model has said to its requests."""


def controlled_question(
    question: str, answers: tuple[str, ...], ranking: Judged, effects: Sequence[float]
) -> ProbeQuestion | None:
    """Return the best ranked relevant passage among weak distractors, and the best ranked hard one.

    None where nothing relevant was retrieved, or fewer than four weak distractors.
    """
    kinds = [
        "relevant" if relevant else distractor_kind(effect)
        for (_, relevant), effect in zip(ranking, effects, strict=True)
    ]
    relevant, weak, hard = (
        [text for (text, _), each in zip(ranking, kinds, strict=True) if each == kind]
        for kind in ("relevant", "weak", "hard")
    )
    if not relevant or len(weak) < K - 1:
        return None
    return ProbeQuestion(
        question=question,
        answers=answers,
        gold=relevant[0],
        distractors=tuple(weak[: K - 1]),
        hard_distractor=hard[0] if hard else None,
    )


def requests(
    question: ProbeQuestion, template: PromptTemplate, abstain: PromptTemplate, *, exact: bool
) -> dict[Cell, Request]:
    """Return what a model is asked about a question.

    `exact` is whether it gives the probability of an abstention, for which `abstain` gives leave.
    """

    def prompt(template: PromptTemplate, placed: Mapping[int, str]) -> str:
        weak = iter(question.distractors)
        passages = [placed[slot] if slot in placed else next(weak) for slot in range(K)]
        return template.render(passages, question.question)

    gold, hard = question.gold, question.hard_distractor
    cells: dict[Cell, Request] = {
        ("None", slot): (prompt(template, {slot: gold}),) for slot in range(K)
    }
    if hard is not None:
        for name, at in HARD_SLOTS.items():
            for slot in {*range(K)} - {at}:
                cells[name, slot] = (prompt(template, {slot: gold, at: hard}),)
        for slot in range(K):
            cells[EFFECT, slot] = abstention_request(prompt(abstain, {slot: hard}), exact=exact)
    return cells


def table_1(asked: Sequence[Answered]) -> Outcomes:
    """Return figures and outcomes of the questions that a model has answered.

    ``with_hard`` are the questions with a hard distractor, and ``distraction`` is its effect by
    slot. In the rows slots count from 1, and that of the hard distractor is left out.
    """
    hard = [at for at, (question, _) in enumerate(asked) if question.hard_distractor]
    of_row = {"None": asked} | {name: [asked[at] for at in hard] for name in HARD_SLOTS if hard}
    effects = [[effect_of(asked[at][1][EFFECT, slot]) for slot in range(K)] for at in hard]
    return {
        "with_hard": hard,
        "distraction": np.mean(effects, axis=0).tolist() if hard else None,
        "rows": {
            name: {
                str(slot + 1): tables.measured(_graded(some, name, slot))
                for slot in range(K)
                if slot != HARD_SLOTS.get(name)
            }
            for name, some in of_row.items()
        },
    }


def _graded(asked: Sequence[Answered], row: str, slot: int) -> Scores:
    grader = GRADERS[GRADER]
    return np.array([grade(grader, str(said[row, slot]), each.answers) for each, said in asked])


def profile_of(model: str, found: Outcomes) -> PositionProfile:
    """Return accuracy by slot among weak distractors, and the effect of hard ones, if any."""
    accuracy = tuple(figure["mean"] for figure in found["rows"]["None"].values())
    effects = found["distraction"]
    return PositionProfile(
        model=model, accuracy=accuracy, distraction=None if effects is None else tuple(effects)
    )


def parts(found: Outcomes, paper: Mapping[str, Sequence[float]]) -> Parts:
    """Yield Table 1, and what a hard distractor costs on the same questions and slots."""
    rows = []
    slots = [str(slot + 1) for slot in range(K)]
    for name, cells in found["rows"].items():
        n = len(cells["1"]["outcomes"])
        rows += tables.our_rows(f"{name}, n = {n}", [cells.get(slot) for slot in slots])
    yield tables.grid(["hard distractor", *slots], [*rows, *tables.paper_rows(paper)])
    if not found["with_hard"]:
        yield (
            "No question has a hard distractor (effect above 0.8), so there is no row with one, "
            "and MinDist has nothing to go by."
        )
    elif len(found["with_hard"]) > 1:
        yield from (_harm(name, found, paper) for name in HARD_SLOTS)


def _harm(name: str, found: Outcomes, paper: Mapping[str, Sequence[float]]) -> str:
    cells, without = found["rows"][name], found["rows"]["None"]
    ours = np.mean([figure["outcomes"] for figure in cells.values()], axis=0)
    alone = np.mean([without[slot]["outcomes"] for slot in cells], axis=0)[found["with_hard"]]
    lower, upper = paired_difference_interval(ours, alone)
    at = [int(slot) - 1 for slot in cells]
    theirs = np.mean([paper[name][slot] - paper["None"][slot] for slot in at])
    return (
        f"{name}: {100 * (ours - alone).mean():+.1f} points [{100 * lower:+.1f}, "
        f"{100 * upper:+.1f}] against None, same questions and slots; paper {theirs:+.1f}."
    )
