"""What the package asks of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Generator(Protocol):
    """Anything that answers prompts.

    Some attributes are read where they exist. ``batch_size``: the number of prompts that one call
    of `generate` takes best. ``concurrency``: the number of calls that may be under way at once.
    Both default to 1. ``identity``: what distinguishes its stored answers from another model's; by
    default the name, the source of the module of its class, and its plain public attributes. A
    change of a setting outside these is not noticed. ``count_tokens``: a function from a prompt to
    its tokens.
    """

    @property
    def name(self) -> str:
        """Name of the model, under which its profile is saved."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return one answer a prompt, in order, without the prompt."""
        ...


@runtime_checkable
class ScoringModel(Generator, Protocol):
    """A model that can also score a given answer; local models can."""

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> Sequence[Sequence[float]]:
        """Return, for each pair, the natural log-probability of each token of the continuation."""
        ...
