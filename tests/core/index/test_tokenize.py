"""The default tokenizer, and the vocabulary that remembers it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import PassageIndex, tokenize
from shared_core.index.sparse.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("PascalCaseName", ["pascalcasename", "pascal", "case", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("__init__", ["__init__", "init"]),
        ("end. Begin _ v1.5", ["end", "begin", "_", "v1.5", "v1", "5"]),
        ("max_max", ["max_max", "max"]),
        (" \t\n!?-", []),
    ],
)
def test_identifiers_are_kept_whole_and_in_parts(text: str, tokens: list[str]) -> None:
    """Whole first, then the parts; a word said twice counts twice, a part of one word once."""
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Größe ÄNDERN МИР 東京", ["größe", "ändern", "мир", "東京"]),
        ("Cafe\u0301", ["café"]),
        ("عَرَبِيّ שָׁלוֹם", ["عَرَبِيّ", "שָׁלוֹם"]),
        ("कि.की कि", ["कि.की", "कि", "की", "कि"]),
        ("x\u0302 5\ufe0f\u20e3", ["x", "5"]),
        ("“Wert”… naïve—word 東京、大阪。", ["wert", "naïve", "word", "東京", "大阪"]),
    ],
)
def test_letters_of_any_script_are_words_and_lower_cased(text: str, tokens: list[str]) -> None:
    """Nothing is assumed about the language but that words are separated."""
    assert tokenize(text) == tokens


@given(st.lists(st.tuples(st.booleans(), st.text("ab_.X é", max_size=12)), max_size=20))
def test_the_vocabulary_counts_what_the_tokenizer_says(steps: list[tuple[bool, str]]) -> None:
    """What is remembered of one text hides no word from the next, once another has brought it."""
    vocabulary = Vocabulary()
    for learns, text in steps:
        if learns:
            names = vocabulary.learn(text), [*vocabulary.ids]
            assert [names[1][number] for number in names[0]] == tokenize(text)
        known = [vocabulary.ids[token] for token in tokenize(text) if token in vocabulary.ids]
        counts, total = vocabulary.count(text)
        assert (counts, total) == (Counter(known), len(tokenize(text)))
        assert [*counts] == [*dict.fromkeys(known)]


@pytest.mark.parametrize(
    ("tokenizer", "told"),
    [
        (str.lower, "must return a list of strings, got 'ab'"),
        (lambda _: [7], "must return strings, got 7"),
    ],
)
def test_a_tokenizer_that_returns_no_list_of_strings_is_refused(tokenizer: Any, told: str) -> None:
    """A text's letters would be the tokens, and numbers be lost on saving."""
    with pytest.raises(TypeError, match=told):
        PassageIndex.from_texts(["ab"], tokenizer=tokenizer)
