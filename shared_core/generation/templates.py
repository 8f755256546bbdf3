"""The prompts: what models are asked, with places for the passages and the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

ABSTENTION = "NO-RESPONSE"
"""What a model says when the context does not hold the answer (PositionalBias, section 3)."""


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt with a place for the passages and one for the question.

    Attributes
    ----------
    text
        Holds ``{context}`` once and ``{question}`` once or twice; every other brace is text.
    separator
        Stands between two passages.

    Raises
    ------
    ValueError
        If a placeholder is missing or repeated.
    """

    text: str
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        for placeholder, most in (("{context}", 1), ("{question}", 2)):
            if not 1 <= (count := self.text.count(placeholder)) <= most:
                raise ValueError(
                    f"a prompt template holds {placeholder} once, got it {count} times"
                )

    def render(self, passages: Sequence[str], question: str) -> str:
        """Return the prompt with the passages in the order given."""
        values = {"context": self.separator.join(passages), "question": question}
        return re.sub(r"\{(context|question)\}", lambda found: values[found[1]], self.text)


def check_template(template: PromptTemplate | None) -> None:
    """Raise ValueError if what is given as a template is none, such as its text."""
    if not isinstance(template, PromptTemplate | None):
        raise ValueError(f"give PromptTemplate(text) as a template, got {template!r:.80}")


_ASK = "Use the context to answer the question. Give the answer alone, in the words of the context."

ANSWER = PromptTemplate(f"{_ASK}\n\nContext:\n{{context}}\n\nQuestion: {{question}}\nAnswer:")
"""Passages joined by blank lines, as both frameworks join them, and the question after them."""

LAYOUTS = {
    "after": ANSWER,
    "before": PromptTemplate(
        f"{_ASK}\n\nQuestion: {{question}}\n\nContext:\n{{context}}\n\nAnswer:"
    ),
    "both": PromptTemplate(
        f"{_ASK}\n\nQuestion: {{question}}\n\nContext:\n{{context}}"
        "\n\nQuestion: {question}\nAnswer:"
    ),
}
"""Where the question stands: after the passages, before them, or at both ends."""

ABSTAIN = PromptTemplate(
    f"{_ASK} If the context does not hold the answer, say {ABSTENTION}."
    "\n\nContext:\n{context}\n\nQuestion: {question}\nAnswer:"
)
"""The same, with leave to abstain (PositionalBias, section 3)."""

KEY_VALUE = PromptTemplate(
    "Extract the value corresponding to the specified key in the JSON object below."
    '\n\nJSON data:\n{{context}}\n\nKey: "{question}"\nCorresponding value:',
    separator=",\n ",
)
"""Key-value retrieval as published: nelson-liu/lost-in-the-middle (Liu et al. 2024)."""
