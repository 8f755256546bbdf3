"""What a probe is going to cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from shared_core.sensitivity.questions import ProbeQuestion
from shared_core.sensitivity.rotation import Rotation
from shared_core.tokens import estimate_tokens


@dataclass(frozen=True)
class ProbePlan:
    """What a probe is going to cost.

    Attributes
    ----------
    questions
        Number of questions at most.
    slots
        Number of slots each is asked in.
    kept
        Answers that the journal already holds.
    calls
        Answers the model still has to give, at most.
    prompt_tokens
        Tokens of the prompts of those calls.
    estimated
        Whether the tokens are a guess (`estimate_tokens`) and not the model's own count.
    left_out
        Questions left out because of ``max_calls``.
    """

    questions: int
    slots: int
    kept: int
    calls: int
    prompt_tokens: int
    estimated: bool
    left_out: int

    @classmethod
    def of(cls, rotation: Rotation, questions: Sequence[ProbeQuestion], affordable: int) -> Self:
        """Return what it costs to ask the first `affordable` of the questions."""
        asked = questions[:affordable]
        requests = [*dict.fromkeys(rotation.requests(asked))]
        new = [request for request in requests if not rotation.client.known([request])]
        counter = getattr(rotation.model, "count_tokens", None)
        count = counter or estimate_tokens
        return cls(
            questions=len(asked),
            slots=len(rotation.slots),
            kept=len(requests) - len(new),
            calls=len(new),
            prompt_tokens=sum(count(prompt) for prompt, *_ in new),
            estimated=counter is None,
            left_out=len(questions) - len(asked),
        )
