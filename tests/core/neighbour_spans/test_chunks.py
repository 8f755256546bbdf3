"""Chunks: of their texts put together nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Chunk, stitch
from shared_core.neighbour_spans.chunks import LONGEST_INDENT
from tests.core.neighbour_spans.making import row


@given(
    st.text(alphabet="ab \n", min_size=1, max_size=60),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 30)), min_size=1, max_size=8),
)
def test_offsets_stitch_any_pieces_that_leave_no_gap(
    text: str, cuts: list[tuple[int, int]]
) -> None:
    """Pieces within others too, in texts that repeat themselves."""
    pieces, end = [], 0
    for start, length in sorted(cuts):
        start = min(start, end)
        pieces.append(Chunk(str(len(pieces)), text[start : start + length], "d", start=start))
        end = max(end, min(len(text), start + length))
    assert stitch(pieces) == text[min(piece.start or 0 for piece in pieces) : end]


def test_without_offsets_chance_is_no_overlap() -> None:
    """A few characters in common come about by themselves; one line break keeps words apart."""
    assert stitch(row("such is the end", "end of it")) == "such is the end\nend of it"
    assert stitch(row("such is the ending", "ending of it")) == "such is the ending of it"
    assert stitch(row("nothing", "in common")) == "nothing\nin common"


def test_offsets_that_the_texts_contradict_are_not_believed() -> None:
    """A splitter may find a repeated text at its first place: nothing is lost by it."""
    first, second = row("It was so. Then it", "went another way.")
    assert stitch([first, replace(second, start=5)]) == "It was so. Then it\nwent another way."
    earlier = [replace(first, start=100), replace(second, text="It", start=2)]
    assert stitch(earlier) == "It was so. Then it\nIt"
    wrong = [replace(first, start=0), replace(second, start=5)]
    assert stitch(wrong) == "It was so. Then it\nwent another way."


@pytest.mark.parametrize(
    ("gap", "filling"),
    [
        (0, ""),
        (1, "\n"),
        (6, "\n\n    "),
        (LONGEST_INDENT + 1, "\n" + " " * LONGEST_INDENT),
        (LONGEST_INDENT + 2, "\n\n" + " " * LONGEST_INDENT),
        (LONGEST_INDENT + 3, "\n\n"),
    ],
)
def test_a_gap_is_filled_as_splitters_make_it(gap: int, filling: str) -> None:
    """They strip white space: line breaks and indents, of which the length is known."""
    one, two = row("one", "two")
    assert stitch([replace(one, start=0), replace(two, start=3 + gap)]) == f"one{filling}two"


def test_empty_texts_leave_no_trace() -> None:
    """No separators on both sides of nothing."""
    assert stitch(row("one", "", "two")) == "one\ntwo"
    assert stitch(row("", "two", "")) == "two"
    assert stitch(row("", "")) == ""
