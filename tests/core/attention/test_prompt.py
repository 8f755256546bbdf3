"""Where documents stand in a prompt, for tokenizers of every kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from shared_core.attention.prompt import RenderedPrompt, render_prompt
from shared_core.attention.relevance import TokenSpan
from shared_core.generation.templates import ANSWER, KEY_VALUE, PromptTemplate
from shared_core.generation.tokens import PromptEncoder
from tests.core.attention.models import SPECIAL, trained_bytes

TEXTS = [
    "The capital of France is Paris.\n\nThe capital of Italy is Rome.\n\n",
    "Question: user assistant question answer passage document number\nAnswer:",
] * 4
DOCUMENTS = [
    "The capital of France is Paris.",
    "It's 東京 👍🏽, e\u0301tat  ",
    "\n Rome is {question} the {context} capital </s> <|user|> of Italy",
    "Paris",
]
QUESTION = "What is the capital of {context}?"
LLAMA_3 = r"\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""Full stops take the line breaks behind them into their token."""
CHAT = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>\n{{ message.content TRIM }}"
    "</s>{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def byte_level(*, trim: bool = False, split: str | None = None) -> Tokenizer:
    """Byte-level BPE; `trim` leaves spaces out of the offsets, as GPT-2's and Llama 3's do."""
    tokenizer = trained_bytes(TEXTS, 420, split)
    bos = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=trim), bos])
    return tokenizer


def byte_fallback() -> Tokenizer:
    """BPE on text whose spaces became ▁, as Llama 2's and Gemma's: no words, bytes if need be."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    names = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=500, special_tokens=names, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def encoder_of(tokenizer: Tokenizer, *, chat: str | None = None) -> PromptEncoder:
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", chat_template=chat
    )
    return PromptEncoder(tokenizer=wrapped, chat=chat is not None)


BYTES = {
    "byte-level": encoder_of(byte_level()),
    "byte-level, spaces trimmed": encoder_of(byte_level(trim=True)),
    "byte-level, as Llama 3": encoder_of(byte_level(trim=True, split=LLAMA_3)),
    "byte-level, no words": encoder_of(byte_level(split=r"[\s\S]+")),
    "byte-level, chat": encoder_of(byte_level(), chat=CHAT.replace("TRIM", "")),
    "byte-level, chat that trims": encoder_of(
        byte_level(split=LLAMA_3), chat=CHAT.replace("TRIM", "| trim")
    ),
}
ENCODERS = {
    **BYTES,
    "byte fallback": encoder_of(byte_fallback()),
    "byte fallback, chat": encoder_of(byte_fallback(), chat=CHAT.replace("TRIM", "")),
}
TEMPLATES = [
    ANSWER,
    KEY_VALUE,
    PromptTemplate("{question}{context}"),
    PromptTemplate(" \n{context}\n{question}\n", separator=" "),
    PromptTemplate("{context}{question}", separator=""),
]

snippets = st.sampled_from(
    [
        *TEXTS[:2],
        *DOCUMENTS,
        *SPECIAL,
        " ",
        "\n\n",
        ".\n\n",
        "[2] ",
        "{question}",
        "👍🏽",
        "e\u0301",
    ]
)
documents_of = st.lists(
    st.lists(snippets | st.text(max_size=6), max_size=4).map("".join), max_size=5
)


def decoded(encoder: PromptEncoder, prompt: RenderedPrompt, span: TokenSpan) -> str:
    return str(
        encoder.tokenizer.decode(prompt.ids[slice(*span)], clean_up_tokenization_spaces=False)
    )


def spaceless(text: str) -> str:
    """Leave out spaces, which byte fallback writes as ▁, and one more behind special tokens."""
    return re.sub("[ ▁]", "", text)


def places(template: PromptTemplate, documents: Sequence[str]) -> list[tuple[int, int]]:
    """Bytes [start, end) of each document's text in the prompt."""
    at = len(template.text.partition("{context}")[0].replace("{question}", QUESTION).encode())
    texts = []
    for document in documents:
        texts.append((at, at + len(document.encode())))
        at = texts[-1][1] + len(template.separator.encode())
    return texts


def owners(
    encoder: PromptEncoder, prompt: RenderedPrompt, texts: Sequence[tuple[int, int]]
) -> list[int | None]:
    """Document of each token by content, token by token from the rule.

    From the bytes of byte-level tokens, without any offsets of the tokenizer.
    """
    contents: list[int | None] = []
    tokens = encoder.tokenizer.convert_ids_to_tokens(list(prompt.ids))
    message, low, high = 0, 0, len(prompt.text.encode())
    if encoder.chat:
        low = message = len("<s><|user|>\n")
        high -= len("</s><|assistant|>\n")
    else:
        tokens[0] = tokens[-1] = ""  # the tokenizer's own <s> and </s>
    at = 0
    for token in tokens:
        # a byte is one character of a byte-level token, and special tokens stand for themselves
        start, at = at, at + len(token)
        meets = [
            number
            for number, (begin, stop) in enumerate(texts)
            if max(start, begin + message, low) < min(at, stop + message, high)
        ]
        contents.append(meets[-1] if meets else None)
    return contents


@pytest.mark.parametrize("template", TEMPLATES, ids=range(len(TEMPLATES)))
@pytest.mark.parametrize("name", ENCODERS)
def test_blocks_tile_the_region_for_every_tokenizer(name: str, template: PromptTemplate) -> None:
    """No token in two blocks or in none, each content within its block, ids as the model's own.

    A content holds its text, placeholders and special tokens of a chat included.
    """
    encoder = ENCODERS[name]
    prompt = render_prompt(encoder, template, DOCUMENTS, QUESTION)
    assert [list(prompt.ids)] == encoder.encode([template.render(DOCUMENTS, QUESTION)])
    assert [end for _, end in prompt.blocks[:-1]] == [start for start, _ in prompt.blocks[1:]]
    assert prompt.region == (prompt.blocks[0][0], prompt.blocks[-1][1])
    assert sum(prompt.lengths) == prompt.region[1] - prompt.region[0]
    for (start, end), (begin, stop) in zip(prompt.blocks, prompt.contents, strict=True):
        assert 0 <= start == begin < stop <= end <= len(prompt.ids)
    if template.separator:  # else a token may be of two documents
        for document, span in zip(DOCUMENTS, prompt.contents, strict=True):
            assert spaceless(document) in spaceless(decoded(encoder, prompt, span))
    assert spaceless(QUESTION) in spaceless(decoded(encoder, prompt, prompt.question))


@given(st.sampled_from([*BYTES]), st.sampled_from(TEMPLATES), documents_of)
@example("byte-level, spaces trimmed", ANSWER, [" ", DOCUMENTS[1]])
def test_every_token_is_where_the_rule_says(
    name: str, template: PromptTemplate, documents: list[str]
) -> None:
    """Any texts, against the rule applied to one token after the other."""
    encoder = BYTES[name]
    texts = places(template, documents)
    plain = template.render(documents, QUESTION)
    if "that trims" in name:
        trimmed = len(plain.encode()) - len(plain.lstrip().encode())
        texts = [(start - trimmed, end - trimmed) for start, end in texts]
    # the same text with no documents to find: which of them the rule leaves without a token
    whole = render_prompt(encoder, PromptTemplate("{context}{question}"), [], plain)
    expected = owners(encoder, whole, texts)
    lost = [number for number in range(len(documents)) if number not in expected]
    if lost:
        named = re.escape(f"question {QUESTION!r}: document {lost[0]} has no token of its own")
        with pytest.raises(ValueError, match=named):
            render_prompt(encoder, template, documents, QUESTION)
        return
    prompt = render_prompt(encoder, template, documents, QUESTION)
    found: list[int | None] = [None] * len(prompt.ids)
    for number, (start, end) in enumerate(prompt.contents):
        found[start:end] = [number] * (end - start)
    assert found == expected


def test_a_part_of_a_document_has_a_span() -> None:
    """Sentences, say; within the content, also where the chat template trims the document."""
    text = "\n  The capital of Italy is Rome. Paris is not."
    for name in ("byte-level", "byte-level, chat that trims"):
        encoder = ENCODERS[name]
        template = PromptTemplate("{context}{question}", separator="\n")
        prompt = render_prompt(encoder, template, [text, "Rome"], "")
        at = text.index(" Paris")
        assert decoded(encoder, prompt, prompt.part(0, at, len(text))).rstrip() == " Paris is not."
        assert prompt.part(0, 0, len(text)) == prompt.part(0, -9, 999) == prompt.contents[0]
        assert prompt.part(1, 0, 4) == prompt.contents[1]


@pytest.mark.parametrize(
    ("chat", "message"),
    [
        ("{{ messages[0].content | upper }}", "alters the message"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "does not show the message once"),
    ],
)
def test_a_chat_template_that_alters_the_message_is_refused(chat: str, message: str) -> None:
    """Its documents would be looked for in the wrong place."""
    with pytest.raises(ValueError, match=f"chat template of .* {message}.*chat=False"):
        render_prompt(encoder_of(byte_level(), chat=chat), ANSWER, ["Paris"], QUESTION)


def test_a_tokenizer_without_offsets_is_named() -> None:
    """With one that has them."""

    class Characters:
        is_fast = False

    encoder: Any = SimpleNamespace(tokenizer=Characters())
    told = r"Characters does not give the characters .* PreTrainedTokenizerFast\.from_pretrained"
    with pytest.raises(ValueError, match=told):
        render_prompt(encoder, ANSWER, ["one", "two"], QUESTION)
