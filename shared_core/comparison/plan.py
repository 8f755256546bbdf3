"""What a comparison is going to cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from shared_core.comparison.work import Work
from shared_core.generation.base import Generator
from shared_core.tokens import estimate_tokens


@dataclass(frozen=True)
class ComparisonPlan:
    """What a comparison is going to cost.

    Attributes
    ----------
    questions, settings, strategies
        How many there are; a setting is a pipeline and a k.
    ks
        Numbers of passages, in the order of the settings.
    kept
        Different prompts that the journal holds the answer of.
    calls
        Different prompts that are still to be asked.
    reads
        Strategy -> times that the model is to be read before its prompts are known: first rounds
        of ``"two_round"``, single passages of ``"distraction_aware"``.
    to_come
        Prompts that these readings bring, at most.
    prompt_tokens, read_tokens
        Tokens of the prompts of `calls`, and of `reads`.
    estimated
        Whether the tokens are a guess (`estimate_tokens`) and not the model's own count.
    """

    questions: int
    settings: int
    strategies: int
    ks: tuple[int, ...]
    kept: int
    calls: int
    reads: Mapping[str, int]
    to_come: int
    prompt_tokens: int
    read_tokens: int
    estimated: bool

    @classmethod
    def of(cls, work: Work, model: Generator) -> Self:
        """Return what some work costs with the model that it asks."""
        prompts, unread, to_come = work.requests()
        new = [prompt for prompt in prompts if not work.asker.known([prompt])]
        counter = getattr(model, "count_tokens", None)
        count = counter or estimate_tokens
        return cls(
            questions=len(work.settings[0].questions),
            settings=len(work.settings),
            strategies=len(work.strategies),
            ks=tuple(dict.fromkeys(setting.k for setting in work.settings)),
            kept=len(prompts) - len(new),
            calls=len(new),
            reads={name: len(each) for name, each in unread.items()},
            to_come=to_come,
            prompt_tokens=sum(count(prompt) for prompt, *_ in new),
            read_tokens=sum(count(prompt) for each in unread.values() for prompt, *_ in each),
            estimated=counter is None,
        )
