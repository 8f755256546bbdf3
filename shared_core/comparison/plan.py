"""What a comparison is going to cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from shared_core.comparison.job import Job
from shared_core.generation.base import Generator
from shared_core.sensitivity.probing import CHARACTERS_A_TOKEN


@dataclass(frozen=True)
class ComparisonPlan:
    """What a comparison is going to cost.

    Attributes
    ----------
    questions, settings, strategies
        How many there are; a setting is a pipeline and a k.
    kept
        Different prompts that the journal holds the answer of.
    calls
        Different prompts that are still to be asked.
    reads
        First rounds of ``"two_round"`` still to be made, each of which brings up to one prompt
        more a question.
    prompt_tokens
        Tokens of the prompts of `calls`.
    estimated
        Whether the tokens are a guess (characters / 4) and not the model's own count.
    """

    questions: int
    settings: int
    strategies: int
    kept: int
    calls: int
    reads: int
    prompt_tokens: int
    estimated: bool

    @classmethod
    def of(cls, job: Job, model: Generator) -> Self:
        """Return what a job costs with the model that it asks."""
        requests = job.requests()
        new = [request for request in requests if not job.asker.known([request])]
        counter = getattr(model, "count_tokens", None)
        return cls(
            questions=len(job.settings[0].questions),
            settings=len(job.settings),
            strategies=len(job.strategies),
            kept=len(requests) - len(new),
            calls=len(new),
            reads=len(job.unread()),
            prompt_tokens=sum(map(counter or _guess_tokens, (prompt for (prompt,) in new))),
            estimated=counter is None,
        )


def _guess_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_A_TOKEN)
