"""One model, one measure: every question with its passage in every slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.models import Generator
from shared_core.sensitivity.measures import Measure
from shared_core.sensitivity.questions import ProbeQuestion


@dataclass(frozen=True)
class Rotation:
    """Turns questions into requests, and responses into values by question and slot."""

    model: Generator
    measure: Measure
    asker: ModelClient
    slots: tuple[int, ...]
    k: int

    def requests(self, questions: Sequence[ProbeQuestion]) -> list[Request]:
        """Return the requests, question by question and within it slot by slot."""
        return [
            self.measure.request(question, slot, self.k)
            for question in questions
            for slot in self.slots
        ]

    def affordable(
        self, questions: Sequence[ProbeQuestion], max_calls: int | None
    ) -> Sequence[ProbeQuestion]:
        """Return the first questions, as many as `max_calls` calls suffice for.

        Raises
        ------
        ValueError
            If they do not suffice for one.
        """
        if max_calls is None:
            return questions
        affordable = max_calls // len(self.slots)
        if not affordable:
            raise ValueError(
                f"max_calls={max_calls} does not suffice for one question, "
                f"which takes {len(self.slots)} calls"
            )
        return questions[:affordable]

    def values(
        self, questions: Sequence[ProbeQuestion], responses: Sequence[Response]
    ) -> npt.NDArray[np.float64]:
        """Return the values, shape (len(questions), len(slots))."""
        width = len(self.slots)
        return np.array(
            [
                [self.measure.value(question, responses[row * width + at]) for at in range(width)]
                for row, question in enumerate(questions)
            ]
        )
