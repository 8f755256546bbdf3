"""Prompts whose documents can be located, token by token.

The prompt is put together piece by piece, so every document's characters are known without
looking for its text, whatever that text contains. It is rendered and tokenised once, as the model
reads it; the tokenizer's own offsets map characters to tokens.

A token may straddle a boundary. One with a character of a document's text is in that document's
content; where it has characters of two documents' texts, in that of the later one. What stands
between two contents is in the block of the earlier document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from shared_core.arrays import Rows
from shared_core.attention.relevance import TokenSpan
from shared_core.generation.templates import PromptTemplate
from shared_core.generation.tokens import MESSAGE, PromptEncoder

CharSpan: TypeAlias = tuple[int, int]
"""Half-open interval [start, end) of characters of a text."""


@dataclass(frozen=True, kw_only=True)
class RenderedPrompt:
    """A prompt as a model reads it, and the positions of its parts.

    Spans are half-open intervals of token positions; documents are in the order of the prompt.

    Attributes
    ----------
    text
        What was tokenised: the prompt, inside the chat rendering if there is one.
    ids
        Token ids, special tokens included.
    contents
        Span of each document's own text, never empty.
    question
        Span of the question; empty if the question is.
    """

    text: str
    ids: tuple[int, ...]
    contents: tuple[TokenSpan, ...]
    question: TokenSpan
    _origins: tuple[int, ...] = field(repr=False)
    _offsets: _Offsets = field(repr=False, compare=False)

    @property
    def blocks(self) -> tuple[TokenSpan, ...]:
        """Span of each document with the separator after it; they tile the document region."""
        starts = [start for start, _ in self.contents]
        return tuple(pairwise([*starts, *(end for _, end in self.contents[-1:])]))

    @property
    def region(self) -> TokenSpan:
        """Span of the document region, which the blocks tile; (0, 0) without documents."""
        return (self.blocks[0][0], self.blocks[-1][1]) if self.blocks else (0, 0)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of tokens in each block, as `attention_placement` takes them."""
        return tuple(end - start for start, end in self.blocks)

    def part(self, document: int, start: int, end: int) -> TokenSpan:
        """Return the span of the characters [start, end) of a document's text.

        It is within the document's content, and empty where those characters have no token.
        """
        first, last = self.contents[document]
        origin = self._origins[document]
        begin, stop = self._offsets.covering(origin + start, origin + end)
        begin = min(max(begin, first), last)
        return begin, max(begin, min(stop, last))


def render_prompt(
    encoder: PromptEncoder,
    template: PromptTemplate,
    documents: Sequence[str],
    question: str,
) -> RenderedPrompt:
    """Render documents and a question, and find their tokens.

    The token ids are those that ``encoder.encode`` gives the same prompt; nothing is cut off.

    Parameters
    ----------
    encoder
        How the model reads prompts. Its tokenizer must return offsets.
    template
        The prompt, and the separator between two documents.
    documents
        Texts, in the order of the prompt. There may be none.
    question
        The question.

    Raises
    ------
    ValueError
        If the tokenizer has no offsets, the chat template alters the message, or a document has no
        token of its own.
    """
    tokenizer = encoder.tokenizer
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"{type(tokenizer).__name__} does not give the characters of a token; give a tokenizer "
            "of the tokenizers library: PreTrainedTokenizerFast.from_pretrained(folder), which "
            "needs a tokenizer.json"
        )
    plain, texts, asked = _compose(template, documents, question)
    text, shift, message = _as_read(encoder, plain)

    def moved(span: CharSpan) -> CharSpan:
        start, end = (min(max(at + shift, message[0]), message[1]) for at in span)
        return start, end

    ids, offsets = _tokenised(encoder, text)
    shown = [moved(span) for span in texts]
    return RenderedPrompt(
        text=text,
        ids=ids,
        contents=_contents(offsets, shown, documents, question),
        question=offsets.covering(*moved(asked)),
        _origins=tuple(start + shift for start, _ in texts),
        _offsets=offsets,
    )


@dataclass(frozen=True)
class _Offsets:
    """Characters [start, end) of each token, both ascending."""

    starts: Rows
    ends: Rows

    def covering(self, start: int, end: int) -> TokenSpan:
        """Span of the tokens with a character of [start, end); empty where that is."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left")) if start < end else first
        return first, last


def _compose(
    template: PromptTemplate, documents: Sequence[str], question: str
) -> tuple[str, list[CharSpan], CharSpan]:
    """Render like `PromptTemplate.render`; return the prompt, and where texts and question are."""
    text = ""
    texts, asked = [], (0, 0)
    for at, piece in enumerate(re.split(r"\{(context|question)\}", template.text)):
        if at % 2 == 0:
            text += piece
        elif piece == "question":
            asked = len(text), len(text) + len(question)
            text += question
        else:
            for number, document in enumerate(documents):
                text += template.separator if number else ""
                texts.append((len(text), len(text) + len(document)))
                text += document
    return text, texts, asked


def _as_read(encoder: PromptEncoder, prompt: str) -> tuple[str, int, CharSpan]:
    """Return the text that is tokenised, the offset of the prompt in it, and its span.

    The chat template may trim the message, as some do.
    """
    if not encoder.chat:
        return prompt, 0, (0, len(prompt))
    name = type(encoder.tokenizer).__name__
    before, mark, after = encoder.render(MESSAGE).partition(MESSAGE)
    if not mark or MESSAGE in after:
        raise ValueError(
            f"the chat template of {name} does not show the message once, so its documents cannot "
            "be found; render the prompt yourself and give chat=False"
        )
    text = encoder.render(prompt)
    shown = text[len(before) : len(text) - len(after)]
    if shown not in (prompt, prompt.strip()):
        raise ValueError(
            f"the chat template of {name} alters the message, so its documents cannot be found; "
            "render the prompt yourself and give chat=False"
        )
    trimmed = 0 if shown == prompt else len(prompt) - len(prompt.lstrip())
    return text, len(before) - trimmed, (len(before), len(before) + len(shown))


def _tokenised(encoder: PromptEncoder, text: str) -> tuple[tuple[int, ...], _Offsets]:
    encoded: Any = encoder.tokenizer(
        text,
        add_special_tokens=not encoder.chat,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        verbose=False,
    )
    starts, ends = np.array(encoded["offset_mapping"], np.intp).reshape(-1, 2).T
    # some tokenizers trim spaces: a token of only spaces is left without characters
    starts = np.minimum(starts, ends - 1)
    # tokens that the tokenizer adds have offsets (0, 0), even those after the text
    added = np.array(encoded["special_tokens_mask"], bool)
    behind = added & np.logical_or.accumulate(~added)
    starts[behind], ends[behind] = len(text), len(text) + 1
    return tuple(encoded["input_ids"]), _Offsets(starts, ends)


def _contents(
    offsets: _Offsets, texts: Sequence[CharSpan], documents: Sequence[str], question: str
) -> tuple[TokenSpan, ...]:
    covering = [offsets.covering(start, end) for start, end in texts]
    contents = []
    for number, (start, end) in enumerate(covering):
        if number + 1 < len(covering):
            end = min(end, covering[number + 1][0])
        if start >= end:
            raise ValueError(
                f"question {question!r}: document {number} has no token of its own, got "
                f"{documents[number][:60]!r}; leave it out"
            )
        contents.append((start, end))
    return tuple(contents)
