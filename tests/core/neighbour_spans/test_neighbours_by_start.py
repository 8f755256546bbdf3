"""Neighbours among chunks that are placed by where a splitter found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter, TextSplitter

from shared_core import Passage
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import PassageNeighbours, stitch
from shared_core.neighbour_spans.order import MOST_STRIPPED
from tests.core.neighbour_spans.making import around, index_of, neighbours, put, run_ids, words

KEYS = ChunkKeys()


def split(text: str, splitter: TextSplitter, name: str = "manual") -> list[Passage]:
    """Return the chunks that a splitter makes of a text, in its order."""
    documents = splitter.split_documents([Document(text, metadata={"source": name})])
    return [
        Passage(f"{name}{at}", document.page_content, document.metadata)
        for at, document in enumerate(documents)
    ]


def starts(passages: Sequence[Passage]) -> list[int]:
    return [passage.metadata["start_index"] for passage in passages]


HEADED = (
    "Some prose before.\n\n" * 4
    + "TABLE II\n"
    + ("IMPACT OF WEIGHTS ON THE ACCURACY " * 5)[:90]
    + "\n\nSome prose after."
)


@pytest.mark.filterwarnings("error")
def test_a_line_that_begins_the_next_chunk_disputes_nothing() -> None:
    """A splitter with overlap gives a short line alone, and again before what follows."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=100, chunk_overlap=10, add_start_index=True
    )
    given = split(HEADED, splitter)
    assert starts(given) == [0, 80, 80, 181]
    source = PassageNeighbours(given[::-1], KEYS)
    found = around(source, given[0])
    assert [chunk.text for chunk in found.run] == [passage.text for passage in given]
    assert stitch(found.run) == HEADED


SENTENCES = " ".join(
    f"Sentence {at} says that part {at} of the machine must be checked with care."
    for at in range(12)
)


def sentences() -> list[Passage]:
    """Return chunks of which LangChain found every other one only, and lost the last, too."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=15, chunk_overlap=3, add_start_index=True, length_function=words
    )
    given = split(SENTENCES, splitter)
    assert starts(given)[:5] == [0, -1, 118, -1, 238]
    return given


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.filterwarnings("error")
def test_chunks_that_the_splitter_lost_lie_where_they_came(named: bool) -> None:
    """It measures overlaps in words or tokens, and looks for chunks by characters."""
    given = sentences()
    if not named:
        given = [replace(each, id="") for each in given]
    source = PassageNeighbours(given, KEYS)
    for seed in given:
        found = around(source, seed)
        assert [chunk.text for chunk in found.run] == [passage.text for passage in given]
        assert stitch(found.run) == SENTENCES


@pytest.mark.filterwarnings("error")
def test_what_an_update_leaves_behind_parts_and_disputes_nothing() -> None:
    """Its offsets are those of the former text, where now there is white space or another chunk."""
    before = " ".join(f"Former line {at} was rather long, says the manual." for at in range(20))
    after = " ".join(f"Line {at} is short." for at in range(50))
    splitter = RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0, add_start_index=True)
    index = index_of(split(before, splitter))
    neighbours(index)
    index.delete([each.id for each in split(before, splitter)])
    given = split(after, splitter, "new")
    given = [replace(each, metadata={**each.metadata, "source": "manual"}) for each in given]
    put(index, given)
    assert run_ids(around(neighbours(index), given[0])) == [each.id for each in given]


def placed(start: int, text: str, name: str = "") -> Passage:
    return Passage(name or f"at {start}", text, {"source": "manual", "start_index": start})


def test_of_several_chunks_that_start_alike_the_longest_is_next_to_what_follows() -> None:
    """From wherever one comes."""
    texts = ("The", "The valve", "The valve is open.")
    given = [*(placed(0, text, text) for text in texts), placed(19, "Close it.")]
    source = PassageNeighbours(given[::-1], KEYS)
    for seed in given:
        assert run_ids(around(source, seed)) == [*texts, "at 19"]


@pytest.mark.parametrize("gap", [MOST_STRIPPED, MOST_STRIPPED + 1])
def test_as_much_as_a_splitter_strips_is_no_hole(gap: int) -> None:
    """Between two chunks; a character more is."""
    given = [placed(gap, "One line."), placed(gap + 9 + gap, "Another line.")]
    found = around(neighbours(index_of(given)), given[0])
    whole = gap == MOST_STRIPPED
    assert len(found.run) == (2 if whole else 1)


def test_a_lost_chunk_that_came_elsewhere_has_no_neighbours() -> None:
    """Written anew by itself it comes last, and overlaps nothing; its former place is a hole."""
    given = sentences()
    index = index_of(given)
    put(index, [replace(given[3], text=given[3].text.upper())])
    source = neighbours(index)
    assert run_ids(around(source, given[3])) == ["manual3"]
    assert run_ids(around(source, given[2], 1)) == ["manual1", "manual2"]
