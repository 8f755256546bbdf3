"""Sentences of a text, and marks around some of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.attention.sentences import mark_spans, sentence_spans

STARS = ("**", "**")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Rome is old. Paris too! Why? ", ["Rome is old.", "Paris too!", "Why?"]),
        ('He said "Go." Then left', ['He said "Go."', "Then left"]),
        ("Pi is 3.14 (about). Or...\n more", ["Pi is 3.14 (about).", "Or...", "more"]),
        ("東京。大阪\uff01 Kyoto", ["東京。", "大阪\uff01", "Kyoto"]),
        ("Title\r\n\r\n- one\n- two", ["Title", "- one", "- two"]),
        ("...", ["..."]),
        ("", []),
        (" \n\n ", []),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    """At stops that space follows, CJK stops and line breaks."""
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@given(st.text(alphabet="a .!?\"')\n。」\u2029", max_size=30))
def test_sentences_leave_out_nothing_but_space(text: str) -> None:
    """In order and apart; none blank or with space at its ends."""
    spans = sentence_spans(text)
    parts = [text[start:end] for start, end in spans]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part and part == part.strip() for part in parts)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_long_row_of_stops_does_not_take_for_ever() -> None:
    """Tables of contents have them; tried at every stop it would take minutes."""
    assert sentence_spans("." * 300_000 + "a") == [(0, 300_001)]


def test_evidence_is_marked_in_the_text() -> None:
    """Nothing else changes."""
    text = "Rome is old. Paris too! Why?"
    spans = sentence_spans(text)
    assert mark_spans(text, spans[1:2], marks=STARS) == "Rome is old. **Paris too!** Why?"
    marked = mark_spans(text, [spans[0], spans[2]], marks=("<a>", "</a>"))
    assert marked == "<a>Rome is old.</a> Paris too! <a>Why?</a>"
    assert mark_spans(text, [], marks=STARS) == text
    assert mark_spans("ab", [(0, 1), (1, 2)], marks=STARS) == "**a****b**"


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(1, 2), (0, 1)], r"ascend .*got \[0, 1\) after 2"),
        ([(1, 4)], r"the 3 characters, got \[1, 4\)"),
    ],
)
def test_what_cannot_be_marked_is_refused(spans: list[tuple[int, int]], message: str) -> None:
    """Parts that overlap or leave the text."""
    with pytest.raises(ValueError, match=message):
        mark_spans("abc", spans, marks=STARS)
