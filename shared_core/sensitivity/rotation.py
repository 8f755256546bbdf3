"""One model, one measure: every question with its passage in every slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared_core.arrays import Scores
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.models import Generator
from shared_core.sensitivity.measures import Measure
from shared_core.sensitivity.questions import ProbeQuestion


@dataclass(frozen=True)
class Rotation:
    """Turns questions into requests, and responses into values by question and slot."""

    model: Generator
    measure: Measure
    client: ModelClient
    slots: tuple[int, ...]
    k: int

    def requests(self, questions: Sequence[ProbeQuestion]) -> list[Request]:
        """Return the requests, question by question and within it slot by slot."""
        return [
            self.measure.request(question, slot, self.k)
            for question in questions
            for slot in self.slots
        ]

    def values(self, questions: Sequence[ProbeQuestion], responses: Sequence[Response]) -> Scores:
        """Return the values, shape (len(questions), len(slots))."""
        asked = [question for question in questions for _ in self.slots]
        values = [*map(self.measure.value, asked, responses)]
        return np.array(values, np.float64).reshape(-1, len(self.slots))
