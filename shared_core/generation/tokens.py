"""Prompts as tokens: what a model reads, where a continuation begins, how a batch is padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from shared_core._extras import require
from shared_core.generation.loading import first_line

if TYPE_CHECKING:
    from torch import Tensor

Chat: TypeAlias = Literal["auto"] | bool | Mapping[str, object]
"""Whether prompts are chat messages; ``"auto"`` where the tokenizer has a chat template.

A mapping says that they are, with these options of the template.
"""

MESSAGE = "\ue000\ue001"
"""Stands for the message in a rendering that only shows where the message goes."""


@dataclass(frozen=True, kw_only=True)
class PromptEncoder:
    """Texts to token ids, the way one model reads them.

    Attributes
    ----------
    tokenizer
        A tokenizer of transformers; its own padding and truncation are never used.
    chat
        Render each prompt as one user message in the tokenizer's chat template. The template
        writes the special tokens then; otherwise the tokenizer adds its own.
    options
        Options of the chat template, by name, such as ``enable_thinking``.

    Raises
    ------
    ValueError
        If the chat template does not show the message.
    """

    tokenizer: Any
    chat: bool
    options: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        failure: Exception | None = None
        try:
            if not self.chat or MESSAGE in self.render(MESSAGE):
                return
        except Exception as error:  # what a template raises is its own affair
            failure = error
        raise ValueError(
            f"the chat template of {type(self.tokenizer).__name__} does not show the message of a "
            f"user{f' ({first_line(failure)})' if failure else ''}; render prompts yourself and "
            "give chat=False"
        ) from failure

    @classmethod
    def of(cls, tokenizer: Any, chat: Chat) -> Self:
        """Return the encoder of a tokenizer of transformers.

        Raises
        ------
        ValueError
            If there is no template to use, or it does not show the message.
        """
        if chat == "auto":
            chat = bool(getattr(tokenizer, "chat_template", None))
        if isinstance(chat, Mapping):
            return cls(tokenizer=tokenizer, chat=True, options={**chat})
        return cls(tokenizer=tokenizer, chat=chat)

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each prompt, up to where the answer begins."""
        return self._ids([self.render(prompt) for prompt in prompts], special=not self.chat)

    def encode_pairs(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> list[tuple[list[int], list[int]]]:
        """Return the token ids of each prompt and those of its continuation.

        The prompt is tokenised alone, since the model is asked what follows it. The continuation
        gets the tokens that it has after the prompt if the tokenizer leaves those of the prompt
        unchanged there; if it would merge across the seam, the continuation is tokenised alone.
        A space at the seam is up to the caller; after a chat message, which begins the answer
        itself, it is removed.

        Raises
        ------
        ValueError
            If there are not as many continuations as prompts, or one of them has no tokens.
        """
        if len(prompts) != len(continuations):
            raise ValueError(
                f"{len(prompts)} prompts but {len(continuations)} continuations; give one each"
            )
        if self.chat:
            continuations = [tail.removeprefix(" ") for tail in continuations]
        texts = [self.render(prompt) for prompt in prompts]
        heads = self._ids(texts, special=not self.chat)
        joined = [text + tail for text, tail in zip(texts, continuations, strict=True)]
        wholes = self._ids(joined, special=not self.chat)
        alone = self._ids(continuations, special=False)
        pairs = []
        for i, (head, whole) in enumerate(zip(heads, wholes, strict=True)):
            tail = whole[len(head) :] if whole[: len(head)] == head else alone[i]
            if not tail:
                raise ValueError(
                    f"continuation {i} is {continuations[i]!r}, which has no tokens to score"
                )
            pairs.append((head, tail))
        return pairs

    def render(self, prompt: str) -> str:
        """Return the text that the model reads: the prompt, or the chat message it becomes."""
        if not self.chat:
            return prompt
        rendered = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tokenize=False,
            add_generation_prompt=True,
            **self.options,
        )
        return str(rendered)

    def _ids(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=special,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            verbose=False,  # no warning about a long text: the model's own limit is checked
        )
        return [list(row) for row in encoded["input_ids"]]


def batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return indices in batches of `size`, rows of like length together, to pad little.

    The longest come first, so that memory runs out at the start or not at all.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + size] for start in range(0, len(order), size)]


def left_padded(rows: Sequence[Sequence[int]], *, pad: int, device: Any) -> dict[str, Tensor]:
    """Return token ids and attention mask, shape (rows, longest row), padded on the left.

    On the left, so that every row ends where its next token begins.
    """
    torch: Any = require("torch", extra="models")
    width = max(len(row) for row in rows)
    ids = [[pad] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return {
        "input_ids": torch.tensor(ids, device=device),
        "attention_mask": torch.tensor(mask, device=device),
    }
