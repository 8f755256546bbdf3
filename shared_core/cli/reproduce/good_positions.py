"""The experiments of "From Bias to Benefit: Place Good Documents in Good Positions"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shared_core.arrays import Scores
from shared_core.cli.console import Console
from shared_core.cli.reproduce.data import RankedQuestion
from shared_core.cli.reproduce.good_positions_rows import FEWEST, Row, Rows
from shared_core.cli.reproduce.published import METHODS, NUMBERS, PLACED
from shared_core.comparison import Failure
from shared_core.evaluation import GRADERS, grade
from shared_core.generation import HuggingFaceModel, Journal
from shared_core.sensitivity.questions import check_context, check_questions

GRADER = "subspan"
"""An accepted short answer occurs in the model's (section 3.2)."""

ORDERS = ("Unordered", "Ordered")

ALIASES = {
    "Vanilla": "Default, original",
    "Vanilla + Default": "Default, original",
    "Vanilla + U-shaped": "U-shaped, original",
    "Our Ranking + U-shaped": "Our",
}
"""What the other tables call the same."""

FEWER = (3, 5)
"""Documents in Table 5, before all of them."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Results of one row of a table by question, without those that any row failed on.

    Attributes
    ----------
    answers
        What the model said last.
    outcomes
        How right it was, in [0, 1], shape (n,).
    """

    answers: tuple[str, ...]
    outcomes: Scores


@dataclass(frozen=True, kw_only=True)
class GoodPositionsExperiment:
    """A model, and the questions that it is asked for each table.

    Attributes
    ----------
    console
        Where it says what is asked.
    model, journal
        The model that is asked, and where the answers that need no attention are kept.
    questions
        At least 2, all with the same number of documents, >= 3, best first.

    Raises
    ------
    ValueError
        If there are fewer, or a question is repeated.
    """

    console: Console
    model: HuggingFaceModel
    journal: Journal
    questions: Sequence[RankedQuestion]

    _said: dict[Row, dict[int, str]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        # Check what the curve needs before hours are spent on the methods without it.
        if len(self.questions) < FEWEST:
            raise ValueError(
                f"the tables take at least {FEWEST} questions, got {len(self.questions)}"
            )
        check_context(self.k)
        check_questions([each.as_probed for each in self.questions], self.k)

    @property
    def k(self) -> int:
        """Number of documents of a question."""
        return len(self.questions[0].documents)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of documents of Table 5."""
        return (*(k for k in FEWER if k < self.k), self.k)

    def table_2(self) -> dict[str, dict[str, Answers]]:
        """Return the results of Table 2 by order and method."""
        return {
            order: {method: self._row(method, order, self.k) for method in METHODS[order]}
            for order in ORDERS
        }

    def table_3(self) -> dict[str, Answers]:
        """Return the results of Table 3 by placement of the ranked documents."""
        return {placement: self._row(placement, "Ordered", self.k) for placement in PLACED}

    def table_5(self) -> dict[str, dict[str, dict[int, Answers]]]:
        """Return the results of Table 5 by order, method and number of documents."""
        return {
            order: {
                method: {k: self._row(method, order, k) for k in self.numbers}
                for method in NUMBERS[order]
            }
            for order in ORDERS
        }

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """Questions that the model failed on in some row; later rows do not ask them.

        They are left out of all tables, so that the rows stay paired. Reading this asks the model.

        Raises
        ------
        GenerationError
            If fewer than two questions are left.
        KeyboardInterrupt
            If interrupted, with a message that says what is kept.
        """
        rows = [(method, order, self.k) for order in ORDERS for method in METHODS[order]]
        rows += [(placement, "Ordered", self.k) for placement in PLACED]
        rows += [
            (method, order, k)
            for order in ORDERS
            for method in NUMBERS[order]
            for k in self.numbers
        ]
        different = [*dict.fromkeys((ALIASES.get(row[0], row[0]), *row[1:]) for row in rows)]
        for number, row in enumerate(different, start=1):
            place = f"{number} of {len(different)}"
            try:
                self._said[row] = self._rows.ask(row, place=place)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"in row {place}; the answers so far are kept in {self.journal.path}, but not "
                    "the rounds whose attention is read: run again to go on"
                ) from None
        return tuple(self._rows.failed[number] for number in sorted(self._rows.failed))

    @cached_property
    def _rows(self) -> Rows:
        return Rows(
            console=self.console, model=self.model, journal=self.journal, questions=self.questions
        )

    def _row(self, method: str, order: str, k: int) -> Answers:
        """Return the results of one method; a method may have several names."""
        failed = {failure.question for failure in self.failures}
        said = self._said[ALIASES.get(method, method), order, k]
        kept = [number for number in said if number not in failed]
        return Answers(
            answers=tuple(said[number] for number in kept),
            outcomes=np.array(
                [
                    grade(GRADERS[GRADER], said[number], self.questions[number].answers)
                    for number in kept
                ]
            ),
        )
