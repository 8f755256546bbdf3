"""What a probe has asked so far: the values of its questions, and where the model failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from shared_core.arrays import Scores
from shared_core.generation.ask import Request, Response
from shared_core.generation.failures import check_failed
from shared_core.generation.responses import Failed
from shared_core.sensitivity.questions import ProbeQuestion
from shared_core.sensitivity.rotation import Rotation


@dataclass
class Answers:
    """Asks the questions in order, some at a time.

    Attributes
    ----------
    rotation
        Makes the requests.
    questions
        All that may be asked.
    max_failed
        Share of them that the model may fail on, in [0, 1).
    values
        Value of each question that was answered, in each slot, shape (n, slots), in [0, 1].
    reasons
        Number of a question, from 0, to why it is left out.
    empty
        How many texts behind `values` are empty.
    """

    rotation: Rotation
    questions: Sequence[ProbeQuestion]
    max_failed: float
    values: Scores = field(init=False)
    reasons: dict[int, str] = field(default_factory=dict, init=False)
    empty: int = field(default=0, init=False)
    _asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.values = np.empty((0, len(self.rotation.slots)))

    def ask(
        self,
        until: int,
        *,
        on_answer: Callable[[int], None] | None,
        on_wait: Callable[[str], None] | None,
    ) -> None:
        """Ask the questions up to the given number that have not been asked yet.

        Raises
        ------
        GenerationError
            If the model has failed on more than `max_failed` of all questions, or would fail
            whatever it is asked.
        """
        asker, new = self.rotation.asker, self.questions[self._asked : until]
        requests, width = self.rotation.requests(new), len(self.rotation.slots)
        number_of = {each: self._asked + at // width for at, each in enumerate(requests)}

        def note(request: Request, failed: Failed) -> None:
            self.reasons.setdefault(number_of[request], failed.reason)
            reasons = [*self.reasons.values()]
            model = f"model {asker.name!r}"
            check_failed(reasons, len(self.questions), self.max_failed, model)

        found = asker.answers_or_failures(
            requests,
            on_failure=note,
            part_of=lambda: self.rotation.requests(self.questions),
            on_answer=on_answer,
            on_wait=on_wait,
        )
        rows = [found[at : at + width] for at in range(0, len(found), width)]
        self._keep(new, rows)
        self._asked = until

    def _keep(
        self, questions: Sequence[ProbeQuestion], rows: Sequence[Sequence[Response | Failed]]
    ) -> None:
        kept: list[ProbeQuestion] = []
        responses: list[Response] = []
        for question, row in zip(questions, rows, strict=True):
            answered = [each for each in row if not isinstance(each, Failed)]
            if len(answered) == len(row):
                kept.append(question)
                responses += answered
        if kept:
            self.values = np.vstack([self.values, self.rotation.values(kept, responses)])
        self.empty += sum(isinstance(each, str) and not each.strip() for each in responses)
