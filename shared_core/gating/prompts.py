"""The prompt after the decision: with context, or without (CAG)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared_core.generation.templates import ANSWER, PromptTemplate

CHAIN_OF_THOUGHT = (
    "Answer the question from what you know. Think step by step, and end with the answer."
    "\n\nQuestion: {question}\nAnswer:"
)

FEW_SHOT = (
    "Answer the question from what you know, as in the examples."
    "\n\n{examples}\n\nQuestion: {question}\nAnswer:"
)

EXAMPLES = (
    ("How many days has a leap year?", "366"),
    ("Which gas do plants take from the air?", "Carbon dioxide"),
)


@dataclass(frozen=True, kw_only=True)
class GatedPrompts:
    """The prompts with context and without.

    Attributes
    ----------
    context
        The prompt with retrieved passages.
    direct
        The prompt without: `CHAIN_OF_THOUGHT`, `FEW_SHOT` or a custom one. Must contain
        ``{question}`` once, and may contain ``{examples}`` once; all other braces are text.
    examples
        Questions and answers for ``{examples}``.

    Raises
    ------
    ValueError
        If a placeholder is missing or repeated, or ``{examples}`` has no examples.
    """

    context: PromptTemplate = ANSWER
    direct: str = CHAIN_OF_THOUGHT
    examples: Sequence[tuple[str, str]] = field(default=EXAMPLES)

    def __post_init__(self) -> None:
        if (count := self.direct.count("{question}")) != 1:
            raise ValueError(f"direct must hold {{question}} once, got it {count} times")
        if (count := self.direct.count("{examples}")) > 1:
            raise ValueError(f"direct may hold {{examples}} once, got it {count} times")
        if count and not self.examples:
            raise ValueError("direct holds {examples}, but there are no examples: give examples=")

    def render(self, question: str, passages: Sequence[str] | None) -> str:
        """Return the prompt.

        Parameters
        ----------
        question
            The question.
        passages
            The retrieved passages; None or empty: the direct prompt is used.
        """
        if passages:
            return self.context.render(passages, question)
        shown = "\n\n".join(f"Question: {asked}\nAnswer: {said}" for asked, said in self.examples)
        head, tail = self.direct.split("{question}")
        head, tail = (part.replace("{examples}", shown) for part in (head, tail))
        return head + question + tail
