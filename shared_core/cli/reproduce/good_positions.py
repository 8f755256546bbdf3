"""The experiments of "From Bias to Benefit: Place Good Documents in Good Positions"."""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from shared_core.attention import (
    Case,
    OneRound,
    RankGPT,
    SelfElicit,
    TwoRound,
    attention_by_position,
)
from shared_core.checking import check_count
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.files import open_journal
from shared_core.cli.questions import default_k
from shared_core.cli.reproduce import tables
from shared_core.cli.reproduce.tables import Outcomes, Parts
from shared_core.comparison import Failure
from shared_core.evaluation import GRADERS, compare_paired, grade
from shared_core.generation import CallableModel, HuggingFaceModel, Journal, ModelClient
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.responses import Request
from shared_core.placement.scored import ATTENTION_PLACEMENTS
from shared_core.sensitivity import ProbeQuestion, read_questions
from shared_core.sensitivity.curve import PositionalCurve
from shared_core.sensitivity.questions import check_context, check_questions

if TYPE_CHECKING:
    from rich.table import Table

PAPER = tables.paper("goodpositions")

GRADER = "subspan"
"""An accepted short answer occurs in the model's (section 3.2)."""

FEWEST = 2
"""Questions, for an interval."""

SEED = 42
"""Of the unordered prompts (appendix B.2 has it of everything)."""

FEWER = (3, 5)
"""Documents in Table 5, before all of them."""

Method: TypeAlias = "str | RankGPT | SelfElicit | TwoRound"
"""A placement of the ranking that the documents come in, or a method that sees a prompt first."""

METHODS: Mapping[str, Method] = {
    "Vanilla": "back_first",
    "RankGPT": RankGPT(),
    "AttentionSort": TwoRound(estimator="attention_sorting", placement="back_first"),
    "ICR": TwoRound(estimator="icr", placement="back_first"),
    "SELFELICIT": SelfElicit(),
    "Our": TwoRound(),
    "Default, original": "back_first",
    "Default, reverse": "front_first",
    "U-shaped, original": "attention_u_shape",
    "U-shaped, reverse": "attention_u_shape_reversed",
    "Vanilla + Default": "back_first",
    "Vanilla + U-shaped": "attention_u_shape",
    "Our Ranking + Default": TwoRound(placement="back_first"),
    "Our Ranking + U-shaped": TwoRound(),
}
"""What the rows of the three tables are; what two of them call by two names is asked once."""

Row: TypeAlias = tuple[Method, str, int]
"""Method, order and number of documents."""


def experiment(arguments: argparse.Namespace, console: Console) -> tuple[Outcomes, Parts]:
    """Ask a model on this machine for every row."""
    if arguments.n is not None:
        check_count(arguments.n, "--n")
    questions = read_questions(arguments.data)[: arguments.n]
    # Check what the curve needs before hours are spent on the methods without it.
    if len(questions) < FEWEST:
        raise ValueError(f"the tables take at least {FEWEST} questions, got {len(questions)}")
    k = default_k(questions) if arguments.k is None else arguments.k
    check_context(k)
    check_questions(questions, k)
    model = models.open_local_model(arguments.model, max_new_tokens=arguments.max_new_tokens)
    asking = _Asking(console, model, open_journal(model.name), questions, k)
    wanted = _wanted(k)
    said, failures = asking.answers(wanted.values())
    found: Outcomes = {"model": model.name, "k": k, "failures": [*map(asdict, failures)]}
    for path, (name, order, number) in wanted.items():
        inner = found
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = asking.figure(said[METHODS[name], order, number])
    for rows in found["table_2"].values():
        _compare(rows, "Vanilla")
    _compare(found["table_3"], "Default, original")
    found["published_percent"] = PAPER["published_percent"]
    return found, _parts(found, [str(number) for number, _ in enumerate(questions, start=1)])


def _wanted(k: int) -> dict[tuple[str, ...], tuple[str, str, int]]:
    """Return table, ..., cell -> name, order and number of documents of a row."""
    paper, numbers = PAPER["published_percent"], (*(n for n in FEWER if n < k), k)
    wanted: dict[tuple[str, ...], tuple[str, str, int]] = {}
    for order, names in paper["table_2"].items():
        wanted |= {("table_2", order, name): (name, order, k) for name in names}
    wanted |= {("table_3", name): (name, "Ordered", k) for name in paper["table_3"]}
    for order, names in paper["table_5"].items():
        for name in names:
            wanted |= {("table_5", order, name, str(n)): (name, order, n) for n in numbers}
    return wanted


@dataclass
class _Asking:
    """Asks a model row by row, and no question again that it has failed on in one.

    `left` are the numbers of the others: the tables are of them alone.
    """

    console: Console
    model: HuggingFaceModel
    journal: Journal
    questions: Sequence[ProbeQuestion]
    k: int

    def __post_init__(self) -> None:
        self.left = [*range(len(self.questions))]

    def answers(
        self, wanted: Iterable[tuple[str, str, int]]
    ) -> tuple[dict[Row, dict[int, str]], list[Failure]]:
        """Return the answers by row and question, and the failures."""
        rows: dict[Row, str] = {}
        for name, order, k in wanted:
            rows.setdefault((METHODS[name], order, k), f"{name}, {order}, {k} documents")
        said: dict[Row, dict[int, str]] = {}
        failures: list[Failure] = []
        for number, (row, what) in enumerate(rows.items(), start=1):
            said[row], failed = self._row(row, f"{number} of {len(rows)}", what)
            failures += failed
            self.left = [*said[row]]
        return said, failures

    def _row(self, row: Row, place: str, what: str) -> tuple[dict[int, str], list[Failure]]:
        named, order, k = row
        curve = self._curve if named in ATTENTION_PLACEMENTS else None
        method = OneRound(placement=named, curve=curve) if isinstance(named, str) else named
        cases = {number: self._case(self.questions[number], order, k) for number in self.left}
        if not isinstance(method, OneRound):
            # The first prompt has the best document next to the question.
            cases = {
                number: replace(case, documents=case.documents[::-1])
                for number, case in cases.items()
            }
        # The first prompt stands for what the method makes of it.
        asked: dict[int, list[Request]] = {
            number: [(case.prompt(method.template, range(k)),)] for number, case in cases.items()
        }
        case_of = {prompt: cases[number] for number, ((prompt,),) in asked.items()}

        def answer(prompts: Sequence[str]) -> list[str]:
            found = method.run(self.model, [case_of[prompt] for prompt in prompts])
            return [each.answer for each in found]

        scores = None if curve is None else curve.scores
        client = ModelClient(
            model=CallableModel(answer, name=self.model.name),
            fingerprint=f"{model_fingerprint(self.model)} {named!r} {scores}",
            journal=self.journal,
            batch_size=self.model.batch_size,
        )
        asking = tables.Asking(self.console, client)
        said, failures = asking.answers(f"{place}: {what}", asked, at=what, fewest=FEWEST)
        return {number: str(text) for number, (text,) in said.items()}, failures

    def _case(self, question: ProbeQuestion, order: str, k: int) -> Case:
        """Return a case with the best documents first, as they are known or as drawn."""
        documents = [question.gold, *question.distractors[: self.k - 1]]
        if order == "Unordered":
            random.Random(f"{SEED} {question.question}").shuffle(documents)
        return Case(question=question.question, documents=documents[:k])

    @cached_property
    def _curve(self) -> PositionalCurve:
        """Positional attention of the model, read from the same questions without answers.

        Questions whose attention cannot be read were left out in earlier rows.
        """
        asked = [self.questions[number] for number in self.left]
        with tables.watched(self.console, "positional curve", 2 * len(asked)) as advance:
            return attention_by_position(self.model, asked, k=self.k, on_answer=advance).curve

    def figure(self, said: Mapping[int, str]) -> Outcomes:
        """Return a row over the questions that no row failed on."""
        graded = [
            grade(GRADERS[GRADER], said[number], self.questions[number].answers)
            for number in self.left
        ]
        answers = [said[number] for number in self.left]
        return {**tables.measured(np.array(graded)), "answers": answers}


def _compare(rows: Mapping[str, Outcomes], baseline: str) -> None:
    """Add to rows the test of their difference from one of them."""
    base = rows[baseline]["outcomes"]
    pairs = {name: (row["outcomes"], base) for name, row in rows.items() if name != baseline}
    for name, test in compare_paired(pairs).items():
        rows[name]["against"] = asdict(test)


def _parts(found: Outcomes, ids: Sequence[str]) -> Parts:
    paper, k, label = found["published_percent"], found["k"], found["model"]
    yield f"\nTable 2: methods, {k} documents ({label})"
    for order, rows in found["table_2"].items():
        yield _table(order, rows, paper["table_2"][order])
    yield f"\nTable 3: placements of the ranked documents, {k} documents ({label})"
    yield _table("", found["table_3"], paper["table_3"])
    yield f"\nTable 5: numbers of documents ({label})"
    for order, rows in found["table_5"].items():
        yield _by_number(order, rows, paper["table_5"][order])
    yield from tables.left_out(found["failures"], ids, "all tables")
    yield PAPER["footnote"]


def _table(title: str, rows: Mapping[str, Outcomes], paper: Mapping[str, Sequence[float]]) -> Table:
    p_values = [row.get("against", {}).get("adjusted") for row in rows.values()]
    ours = [*tables.our_rows("here", [*rows.values()]), tables.p_row(p_values)]
    names = [f"{model}, {dataset}" for model in PAPER["models"] for dataset in "HMW"]
    transposed = dict(zip(names, zip(*paper.values(), strict=True), strict=True))
    headings = [name.replace(", ", ",\n").replace("nSort", "n\nSort") for name in rows]
    return tables.grid([title, *headings], [*ours, *tables.paper_rows(transposed)])


def _by_number(
    order: str,
    rows: Mapping[str, Mapping[str, Outcomes]],
    paper: Mapping[str, Sequence[float]],
) -> Table:
    lines = []
    for name, by_number in rows.items():
        means, intervals = tables.our_rows(name, [*by_number.values()])
        lines += [[*means, *tables.paper_cells(paper[name])], intervals]
        here = [f"here\n{k} docs" for k in by_number]
    theirs = [f"{model}\n{k}" for model in ("V-7b", "Q-in") for k in (3, 5, 10)]
    return tables.grid([order, *here, *theirs], lines)
