"""Where documents stand in a prompt, for tokenizers of every kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import TokenSpan
from shared_core.generation.templates import ANSWER, KEY_VALUE, PromptTemplate
from shared_core.generation.tokens import PromptEncoder

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
LABELS = [f"[{number}] " for number in range(1, 5)]
LLAMA_3 = r"\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""Full stops take the line breaks behind them into their token."""
CHAT = (
    "{{ bos_token }}{% for message in messages %}<|{{ message.role }}|>\n{{ message.content TRIM }}"
    "</s>{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
SPECIAL = ["<pad>", "<s>", "</s>", "<|user|>", "<|assistant|>"]


def byte_level(*, trim: bool = False, split: str | None = None) -> Tokenizer:
    """Byte-level BPE; `trim` leaves spaces out of the offsets, as GPT-2's and Llama 3's do."""
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    splitting = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splitting, level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=420,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
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


def unigram() -> Tokenizer:
    """Metaspace; what it does not know is one token, across any boundary."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.UnigramTrainer(
            vocab_size=120,
            special_tokens=["<unk>", *SPECIAL],
            unk_token="<unk>",
            show_progress=False,
        ),
    )
    return tokenizer


def word_piece() -> Tokenizer:
    """Lower case without accents, nothing for spaces, special tokens on both sides."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    names = ["[UNK]", "[CLS]", "[SEP]", *SPECIAL]
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=200, special_tokens=names, show_progress=False)
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
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
    "unigram": encoder_of(unigram()),
    "word piece": encoder_of(word_piece()),
    "word piece, chat": encoder_of(word_piece(), chat=CHAT.replace("TRIM", "| trim")),
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
    return re.sub("[ ▁]", "", text)


def places(
    template: PromptTemplate, documents: Sequence[str], labels: Sequence[str]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Bytes [start, end) of each document with label and separator, and of its text."""
    at = len(template.text.partition("{context}")[0].replace("{question}", QUESTION).encode())
    blocks, texts = [], []
    for number, (label, document) in enumerate(zip(labels, documents, strict=True)):
        behind = template.separator if number < len(documents) - 1 else ""
        begin = at + len(label.encode())
        end = begin + len(document.encode())
        blocks.append((at, end + len(behind.encode())))
        texts.append((begin, end))
        at = blocks[-1][1]
    return blocks, texts


def owners(
    encoder: PromptEncoder,
    prompt: RenderedPrompt,
    blocks: Sequence[tuple[int, int]],
    texts: Sequence[tuple[int, int]],
) -> tuple[list[int | None], list[int | None]]:
    """Document of each token by content and by block, token by token from the three rules.

    From the bytes of byte-level tokens, without any offsets of the tokenizer.
    """
    contents: list[int | None] = []
    by_block: list[int | None] = []
    tokens = encoder.tokenizer.convert_ids_to_tokens(list(prompt.ids))
    message = 0
    if encoder.chat:
        message = len("<s><|user|>\n")
        low, high = message, len(prompt.text.encode()) - len("</s><|assistant|>\n")
    else:
        tokens[0] = tokens[-1] = ""  # the tokenizer's own <s> and </s>
        low, high = 0, len(prompt.text.encode())
    at = 0
    for token in tokens:
        # a byte is one character of a byte-level token, and special tokens stand for themselves
        start, end = at, at + len(token)
        at = end
        meets = [
            number
            for number, (begin, stop) in enumerate(texts)
            if max(start, begin + message, low) < min(end, stop + message, high)
        ]
        inside = [
            number
            for number, (begin, stop) in enumerate(blocks)
            if start < end and begin + message <= end - 1 < stop + message and low < end <= high
        ]
        contents.append(meets[-1] if meets else None)
        by_block.append(meets[-1] if meets else inside[0] if inside else None)
    return contents, by_block


def spelled(spans: Sequence[TokenSpan], n: int) -> list[int | None]:
    """Which span each of `n` positions is in."""
    out: list[int | None] = [None] * n
    for number, (start, end) in enumerate(spans):
        out[start:end] = [number] * (end - start)
    return out


@pytest.mark.parametrize("template", TEMPLATES, ids=range(len(TEMPLATES)))
@pytest.mark.parametrize("name", ENCODERS)
def test_blocks_tile_the_region_for_every_tokenizer(name: str, template: PromptTemplate) -> None:
    """No token in two blocks or in none, each content within its block, ids as the model's own."""
    encoder = ENCODERS[name]
    prompt = render_prompt(encoder, template, DOCUMENTS, QUESTION, labels=LABELS)
    texts = [label + document for label, document in zip(LABELS, DOCUMENTS, strict=True)]
    assert [list(prompt.ids)] == encoder.encode([template.render(texts, QUESTION)])
    assert [end for _, end in prompt.blocks[:-1]] == [start for start, _ in prompt.blocks[1:]]
    assert prompt.region == (prompt.blocks[0][0], prompt.blocks[-1][1])
    assert sum(prompt.lengths) == prompt.region[1] - prompt.region[0]
    for (start, end), (begin, stop) in zip(prompt.blocks, prompt.contents, strict=True):
        assert 0 <= start <= begin < stop <= end <= len(prompt.ids)


@given(st.sampled_from([*BYTES]), st.sampled_from(TEMPLATES), documents_of, st.booleans())
def test_every_token_is_where_the_rules_say(
    name: str, template: PromptTemplate, documents: list[str], labelled: bool
) -> None:
    """Any texts, against the rules applied to one token after the other."""
    encoder = BYTES[name]
    labels = [f"[{number}] " if labelled else "" for number in range(len(documents))]
    blocks, texts = places(template, documents, labels)
    rendered = [label + document for label, document in zip(labels, documents, strict=True)]
    plain = template.render(rendered, QUESTION)
    if "that trims" in name:
        trimmed = len(plain.encode()) - len(plain.lstrip().encode())
        blocks = [(start - trimmed, end - trimmed) for start, end in blocks]
        texts = [(start - trimmed, end - trimmed) for start, end in texts]
    # the same text with no documents to find: which of them the rules leave without a token
    whole = render_prompt(encoder, PromptTemplate("{context}{question}"), [], plain)
    found = {*owners(encoder, whole, blocks, texts)[0]}
    lost = [number for number in range(len(documents)) if number not in found]
    if lost:
        with pytest.raises(ValueError, match=f"document {lost[0]} has no token of its own"):
            render_prompt(encoder, template, documents, QUESTION, labels=labels)
        return
    prompt = render_prompt(encoder, template, documents, QUESTION, labels=labels)
    contents, by_block = owners(encoder, prompt, blocks, texts)
    assert spelled(prompt.contents, len(prompt.ids)) == contents
    assert spelled(prompt.blocks, len(prompt.ids)) == by_block


@given(st.sampled_from([name for name in ENCODERS if "byte" in name]), documents_of)
def test_the_tokens_of_a_content_hold_its_text(name: str, documents: list[str]) -> None:
    """Whatever it contains: placeholders, special tokens of the chat, other documents' texts."""
    encoder = ENCODERS[name]
    documents = [f"a{document}" for document in documents]  # not empty
    labels = [f"[{number}] " for number in range(len(documents))]
    prompt = render_prompt(encoder, ANSWER, documents, QUESTION, labels=labels)
    for document, span in zip(documents, prompt.contents, strict=True):
        if name.startswith("byte-level"):
            assert document in decoded(encoder, prompt, span)
        # byte fallback writes spaces as ▁, and one more behind a special token
        assert spaceless(document) in spaceless(decoded(encoder, prompt, span))
    assert QUESTION in decoded(encoder, prompt, prompt.question)


def parts(
    name: str, template: PromptTemplate, documents: Sequence[str], **options: Any
) -> tuple[list[str], list[str]]:
    """Text of the blocks and of the contents."""
    encoder = ENCODERS[name]
    prompt = render_prompt(encoder, template, documents, QUESTION, **options)
    return (
        [decoded(encoder, prompt, span) for span in prompt.blocks],
        [decoded(encoder, prompt, span) for span in prompt.contents],
    )


def test_a_block_is_label_text_and_separator() -> None:
    """The last one has no separator behind it; a content is the text, with its own space token."""
    blocks, contents = parts("byte-level", ANSWER, ["Paris.", "Rome"], labels=["Title (", "user: "])
    assert blocks == ["Title (Paris.\n\n", "user: Rome"]
    assert contents == ["Paris.", " Rome"]


def test_a_full_stop_stays_with_its_document() -> None:
    """As Llama 3 writes ".\n\n" in one token, even where the line breaks are the template's."""
    blocks, contents = parts("byte-level, as Llama 3", ANSWER, ["Paris.", "Rome."])
    assert blocks == contents == ["Paris.\n\n", "Rome.\n\n"]


def test_a_token_between_documents_goes_to_the_one_it_ends_in() -> None:
    """A space in front of a word is of the word's token, whoever wrote the space."""
    blocks, contents = parts(
        "byte-level", PromptTemplate("{context}\n{question}", separator=" "), ["Rome", "Paris"]
    )
    assert blocks == contents == ["Rome", " Paris"]


def test_a_token_with_text_is_never_its_neighbours() -> None:
    """Even where it ends in the label of the next document."""
    blocks, contents = parts(
        "byte-level",
        PromptTemplate("{context}\n{question}", separator=""),
        ["Rome Par", "Rome"],
        labels=["", "is "],
    )
    assert blocks == contents == ["Rome Paris", " Rome"]


def test_a_token_with_text_of_two_documents_is_the_later_ones() -> None:
    """Of exactly one; and the earlier one is missed if that was all it had."""
    joined = PromptTemplate("{context}\n{question}", separator="")
    blocks, contents = parts("byte-level", joined, ["France Pa", "ris"])
    assert blocks == contents == ["France", " Paris"]
    with pytest.raises(ValueError, match="document 0 has no token of its own, got ' Pa'"):
        parts("byte-level", joined, [" Pa", "ris"])


def test_special_tokens_of_the_tokenizer_are_in_no_span() -> None:
    """Neither in front of a document that opens the prompt, nor behind one that closes it."""
    prompt = render_prompt(
        ENCODERS["byte-level"], PromptTemplate("{question}{context}"), ["Rome"], ""
    )
    assert (prompt.ids[0], prompt.ids[-1]) == (1, 2)
    assert prompt.blocks == prompt.contents == ((1, len(prompt.ids) - 1),)
    prompt = render_prompt(ENCODERS["word piece"], PromptTemplate("{context}{question}"), [], "of")
    assert prompt.question == (1, len(prompt.ids) - 1)


def test_special_tokens_of_a_chat_are_written_once() -> None:
    """By the template; a document that contains them is found as it stands."""
    encoder = ENCODERS["byte-level, chat"]
    prompt = render_prompt(encoder, ANSWER, ["<|user|>", "user"], "<|assistant|>")
    assert prompt.text.startswith("<s><|user|>\nUse the context")
    assert prompt.text.endswith("Answer:</s><|assistant|>\n")
    assert (prompt.ids.count(1), prompt.ids.count(2)) == (1, 1)
    assert [decoded(encoder, prompt, span) for span in prompt.contents] == ["<|user|>", "user"]
    assert decoded(encoder, prompt, prompt.question) == "<|assistant|>"


def test_a_part_of_a_document_has_a_span() -> None:
    """Sentences, say; within the content, also where the chat template trims the document."""
    text = "\n  The capital of Italy is Rome. Paris is not."
    for name in ("byte-level", "byte-level, chat that trims"):
        encoder = ENCODERS[name]
        template = PromptTemplate("{context}{question}", separator="\n")
        prompt = render_prompt(encoder, template, [text, "Rome"], "")
        at = text.index(" Paris")
        assert decoded(encoder, prompt, prompt.part(0, at, len(text))).rstrip() == " Paris is not."
        assert decoded(encoder, prompt, prompt.part(0, at + 2, at + 3)).lstrip() == "Paris"
        assert prompt.part(0, 0, len(text)) == prompt.part(0, -9, 999) == prompt.contents[0]
        assert prompt.part(1, 0, 4) == prompt.contents[1]
        start, end = prompt.part(0, 7, 7)
        assert start == end
        for bad in (2, -1):
            with pytest.raises(ValueError, match=f"document {bad} is not one of the 2"):
                prompt.part(bad, 0, 1)


def test_characters_without_a_token_have_an_empty_span() -> None:
    """Spaces and accents, to a tokenizer that drops them."""
    prompt = render_prompt(ENCODERS["word piece"], ANSWER, ["of   France"], QUESTION)
    start, end = prompt.part(0, 3, 5)
    assert prompt.contents[0][0] < start == end < prompt.contents[0][1]


def test_without_documents_there_is_a_prompt_without_spans() -> None:
    """A retriever may find nothing; what the model says then is a fair question."""
    prompt = render_prompt(ENCODERS["byte-level"], ANSWER, [], QUESTION)
    assert [list(prompt.ids)] == ENCODERS["byte-level"].encode([ANSWER.render([], QUESTION)])
    assert (prompt.blocks, prompt.contents, prompt.lengths) == ((), (), ())
    assert prompt.region == (0, 0)


def test_an_empty_question_has_an_empty_span() -> None:
    """Where it would stand."""
    prompt = render_prompt(ENCODERS["byte-level"], PromptTemplate("{context}{question}"), ["a"], "")
    assert prompt.question == (2, 2)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("byte-level", ""),
        ("word piece", "  \n"),
        ("word piece", "\u0301"),
        ("byte-level, chat", ""),
    ],
)
def test_a_document_that_vanishes_is_named(name: str, document: str) -> None:
    """It could not be scored, and its neighbours would move."""
    with pytest.raises(ValueError, match=r"document 1 has no token of its own, got .*leave it out"):
        render_prompt(ENCODERS[name], ANSWER, ["Rome", document, "Paris"], QUESTION)


def test_a_document_that_the_chat_template_trims_keeps_to_the_message() -> None:
    """The tokens around the message are the template's, not what was trimmed."""
    name, template = "byte-level, chat that trims", PromptTemplate("{context}{question}")
    prompt = render_prompt(ENCODERS[name], template, ["\n\n Rome"], " \n\n\n")
    assert decoded(ENCODERS[name], prompt, prompt.contents[0]) == "Rome"
    assert prompt.question == (prompt.contents[0][1],) * 2
    blocks, contents = parts(name, PromptTemplate("{question}{context}"), ["Rome \n\n\n\n\n"])
    assert blocks == contents == ["Rome"]


def test_a_document_that_the_chat_template_trims_away_is_named() -> None:
    """Rather than given the template's own tokens."""
    template = PromptTemplate("{context}{question}", separator="")
    with pytest.raises(ValueError, match="document 0 has no token of its own"):
        render_prompt(ENCODERS["byte-level, chat that trims"], template, [" \n", "Rome"], "")


class Characters(PreTrainedTokenizer):
    """A tokenizer in Python, which knows no offsets."""

    @property
    def vocab_size(self) -> int:
        return 128

    def get_vocab(self) -> dict[str, int]:
        return {chr(code): code for code in range(128)}


def test_a_tokenizer_without_offsets_is_refused() -> None:
    """By name, with the way out."""
    encoder = PromptEncoder(tokenizer=Characters(), chat=False)
    with pytest.raises(
        ValueError, match=r"Characters does not give .* PreTrainedTokenizerFast\.from_pretrained"
    ):
        render_prompt(encoder, ANSWER, ["a"], QUESTION)


@pytest.mark.parametrize(
    ("chat", "message"),
    [
        ("{{ messages[0].content | upper }}", "alters the message"),
        ("{{ messages[0].content }}{{ messages[0].content }}", "does not show the message once"),
        ("{{ messages[0].content | replace('Paris', 'Rome') }}", "alters the message"),
        ("{{ messages[0].content | length }}{{ messages[0].content }}", "alters the message"),
    ],
)
def test_a_chat_template_that_alters_the_message_is_refused(chat: str, message: str) -> None:
    """Its documents would be looked for in the wrong place."""
    with pytest.raises(ValueError, match=f"chat template of .* {message}.*chat=False"):
        render_prompt(encoder_of(byte_level(), chat=chat), ANSWER, ["Paris"], QUESTION)


def test_there_is_one_label_a_document() -> None:
    """Or none at all."""
    with pytest.raises(ValueError, match="1 labels for 2 documents"):
        render_prompt(ENCODERS["byte-level"], ANSWER, ["a", "b"], QUESTION, labels=["[1] "])
