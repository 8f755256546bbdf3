"""The default tokenizer, and the lexicon that remembers it."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import BM25Index, tokenize
from shared_core.index.sparse.vocabulary import Vocabulary as Lexicon
from shared_core.index.tokenize import expand_word

GRAVE, CEDILLA, DOT_BELOW = "\u0300", "\u0327", "\u0323"
"""Marks of the classes 230, 202 and 220, in which order NFC puts them the other way round."""

MARKS = st.sampled_from([GRAVE, CEDILLA, DOT_BELOW, "\u0344", "\u0f73", "\u064b", "\u0651"])
"""The fourth and the fifth stand for two marks each."""


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Use torch.nn.Conv2d!", ["use", "torch.nn.conv2d", "torch", "nn", "conv2d"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("camelCase", ["camelcase", "camel", "case"]),
        ("PascalCaseName", ["pascalcasename", "pascal", "case", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["__init__", "init"]),
        ("_", ["_"]),
        ("Plain words, and more.", ["plain", "words", "and", "more"]),
        ("end. Begin", ["end", "begin"]),
        ("v1.5", ["v1.5", "v1", "5"]),
        ("max_max", ["max_max", "max"]),
        ("again again", ["again", "again"]),
        ("", []),
        (" \t\n", []),
        ("!?-", []),
    ],
)
def test_identifiers_are_kept_whole_and_in_parts(text: str, tokens: list[str]) -> None:
    """Whole first, then the parts; a word said twice counts twice, a part of one word once."""
    assert tokenize(text) == tokens


def test_a_dotted_name_keeps_its_snake_case_part_whole() -> None:
    """Whoever asks for ``max_pool2d`` means that name, and not any text with its two halves."""
    text = "torch.nn.functional.max_pool2d"
    assert {text, "functional", "max_pool2d", "max", "pool2d"} <= {*tokenize(text)}
    index = BM25Index.from_texts([text, "pool2d of the max"])
    assert index.search("max_pool2d", 1)[0].tolist() == [0]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Größe ÄNDERN", ["größe", "ändern"]),
        ("Привет МИР", ["привет", "мир"]),
        ("東京", ["東京"]),
        ("ΑΒΓ", ["αβγ"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("عَرَبِيّ שָׁלוֹם", ["عَرَبِيّ", "שָׁלוֹם"]),
        ("कि.की कि", ["कि.की", "कि", "की", "कि"]),
        ("x\u0302 5\ufe0f\u20e3", ["x", "5"]),
    ],
)
def test_letters_of_any_script_are_words_and_lower_cased(text: str, tokens: list[str]) -> None:
    """Nothing is assumed about the language but that words are separated."""
    assert tokenize(text) == tokens


@given(st.text(max_size=60))
def test_tokens_are_lower_case_and_not_empty(text: str) -> None:
    """Whatever comes in, a query in capitals finds what a query in small letters finds."""
    for token in tokenize(text):
        assert token
        assert token == token.lower()


@given(st.lists(st.text(max_size=5) | st.text(MARKS, max_size=29), max_size=8).map("x".join))
def test_texts_without_many_marks_in_a_row_are_composed_as_they_are(text: str) -> None:
    """By NFC; letters with marks of their own, symbols and scripts of all kinds among them."""
    words = words_of(unicodedata.normalize("NFC", text))
    assert tokenize(text) == [token for word in words for token in expand_word(word)]


def words_of(text: str) -> list[str]:
    """Words, character by character: marks of a script count where a word has begun."""
    words = [""]
    for at, char in enumerate(text):
        dot = char == "." and words[-1] and is_letter(text[at + 1 : at + 2])
        mark = is_mark(char) and words[-1] and not words[-1].endswith(".")
        if is_letter(char) or dot or mark:
            words[-1] += char
        else:
            words.append("")
    return [word for word in words if word]


def is_mark(char: str) -> bool:
    name = unicodedata.name(char, "")
    is_general = name.startswith(("COMBINING", "VARIATION SELECTOR"))
    return unicodedata.category(char) in ("Mn", "Mc") and not is_general


def is_letter(char: str) -> bool:
    return re.match(r"\w", char) is not None


def test_of_many_marks_in_disorder_the_first_thirty_count() -> None:
    """Sorting them all takes time quadratic in their number. What stands around them stays."""
    thirty, more = (GRAVE + CEDILLA) * 15, (GRAVE + CEDILLA) * 40_000
    assert tokenize(f"xa{thirty[1:]}{DOT_BELOW}") == ["xạ"]
    assert tokenize(f"xa{thirty}{DOT_BELOW}") == ["xà"]
    assert tokenize(f"one xa{more}{DOT_BELOW}b.c two") == ["one", "xà", "b.c", "b", "c", "two"]


def test_marks_in_order_all_count() -> None:
    """However many: they cost no more time than other characters."""
    assert tokenize(f"a{CEDILLA * 100}{DOT_BELOW}") == ["ạ"]


def test_no_mark_and_no_symbol_can_become_a_part_of_a_word_by_itself() -> None:
    """In this version of Unicode: so none is lost where one of many in a row is left out."""
    word = re.compile(r"\w")
    composed: dict[str, str] = {}
    for char in map(chr, range(sys.maxunicode + 1)):
        parts = unicodedata.decomposition(char)
        if parts and not parts.startswith("<"):
            composed[char] = chr(int(parts.split()[0], 16))
        assert not (unicodedata.combining(char) and word.match(char)), ascii(char)
    assert len(composed) > 2000
    for char, first in composed.items():
        assert bool(word.match(char)) == bool(word.match(first)), ascii(char)


@given(
    st.lists(
        st.text(st.characters(), max_size=20)
        | st.text(MARKS, min_size=25, max_size=40)
        | st.just(CEDILLA * 33 + GRAVE),
        max_size=6,
    ).flatmap(lambda parts: st.tuples(st.just("".join(parts)), st.just(" ".join(parts))))
)
def test_the_lexicon_counts_what_the_tokenizer_says(texts: tuple[str, ...]) -> None:
    """Learning word by word, with what was expanded before remembered, changes nothing."""
    lexicon = Lexicon()
    for text in texts:
        learned = lexicon.learn(text)
        names = list(lexicon.ids)
        assert [names[number] for number in learned] == tokenize(text)
        assert lexicon.lookup(text) == Counter(learned)


def test_what_is_long_is_not_remembered() -> None:
    """A server would keep every query that has no spaces."""
    lexicon = Lexicon()
    words = ["the", "cat", "sat", "on", "mat"]
    lexicon.learn(" ".join(words))
    known = len(lexicon._known)
    for n in range(50):
        lexicon.lookup(",".join(words[n % 5 :] + words * 20))
        lexicon.learn("-".join(words[n % 5 :] + words * 20))
    assert len(lexicon._known) == known
    lexicon.lookup("cat,mat")
    assert len(lexicon._known) == known + 1


@given(st.lists(st.tuples(st.booleans(), st.text("ab_. ", max_size=12)), max_size=20))
def test_looking_up_finds_what_has_been_learned_by_then(steps: list[tuple[bool, str]]) -> None:
    """What is remembered of one query hides no word from the next, once a text has brought it."""
    lexicon = Lexicon()
    for learns, text in steps:
        if learns:
            lexicon.learn(text)
        known = [lexicon.ids[token] for token in tokenize(text) if token in lexicon.ids]
        assert lexicon.lookup(text) == Counter(known)
        assert list(lexicon.lookup(text)) == list(dict.fromkeys(known))


def test_any_callable_serves_as_tokenizer() -> None:
    """Character bigrams, say for a language without spaces."""

    def bigrams(text: str) -> list[str]:
        return [text[at : at + 2] for at in range(len(text) - 1)]

    index = BM25Index.from_texts(["東京都庁", "京都大学", "大阪"], tokenizer=bigrams)
    rows, scores = index.search("京都", 10)
    assert sorted(rows.tolist()) == [0, 1]
    assert (scores > 0).all()


def test_a_callable_object_that_is_empty_is_still_a_tokenizer() -> None:
    """What counts is whether one was given, not whether it is true."""

    class Split(list[str]):
        def __call__(self, text: str) -> list[str]:
            return text.split("|")

    index = BM25Index.from_texts(["a b|c d", "a|b"], tokenizer=Split())
    assert index.search("a b", 5)[0].tolist() == [0]


def test_a_tokenizer_that_returns_no_strings_is_refused() -> None:
    """Numbers would be lost on saving; the message shows what came."""
    with pytest.raises(TypeError, match="must return strings, got 7"):
        BM25Index.from_texts(["x"], tokenizer=lambda _: [7])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("tokenizer", "got"), [(str.lower, "'ab'"), ("{}".format, "'ab'"), ([].append, "None")]
)
def test_a_tokenizer_that_returns_a_text_or_nothing_is_refused(tokenizer: Any, got: str) -> None:
    """A text's letters would be the tokens; of what is indexed as of a query."""
    told = f"the tokenizer must return a list of strings, got {got}"
    with pytest.raises(TypeError, match=told):
        BM25Index.from_texts(["ab"], tokenizer=tokenizer)
    index = BM25Index(tokenizer=lambda text: tokenizer(text) if text == "ab" else [text])
    index.add(["a", "b"])
    for ask in (index.scores, lambda text: index.score_texts("a", [text])):
        with pytest.raises(TypeError, match=told):
            ask("ab")


@given(st.lists(st.text(max_size=12), max_size=4), st.text("ab_.X ", max_size=20))
def test_the_lexicon_measures_what_the_tokenizer_says(texts: list[str], text: str) -> None:
    """Known tokens by their number, and how many there are with the unknown ones."""
    lexicon = Lexicon()
    for learned in texts:
        lexicon.learn(learned)
    assert lexicon.measure(text) == (lexicon.lookup(text), len(tokenize(text)))
