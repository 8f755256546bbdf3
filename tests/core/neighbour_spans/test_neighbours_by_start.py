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
from tests.core.making import lines_run
from tests.core.neighbour_spans.making import around, index_of, put, run_ids

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


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.filterwarnings("error")
def test_a_line_that_begins_the_next_chunk_disputes_nothing(named: bool) -> None:
    """A splitter with overlap gives a short line alone, and again before what follows."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=100, chunk_overlap=10, add_start_index=True
    )
    given = split(HEADED, splitter)
    assert starts(given) == [0, 80, 80, 181]
    if not named:
        given = [replace(each, id="") for each in given]
    source = PassageNeighbours.of(given[::-1], KEYS)
    found = around(source, given[0])
    assert [chunk.text for chunk in found.run] == [passage.text for passage in given]
    assert stitch(found.run) == HEADED


def test_texts_that_start_alike_and_go_on_differently_are_two() -> None:
    """Also where each of them goes on from a third one."""
    texts = ("The valve", "The valve is open.", "The valve is shut.")
    given = [Passage(text, text, {"source": "f", "start_index": 0}) for text in texts]
    with pytest.warns(UserWarning, match=r"'The valve is open.' and .* both start at 0 of"):
        found = around(PassageNeighbours.of(given, KEYS), given[0])
    assert run_ids(found) == ["The valve"]


@pytest.mark.filterwarnings("ignore")
def test_many_chunks_of_one_start_take_no_longer_than_others() -> None:
    """Rows of a table, each of which its loader took for a text; once their square was taken."""

    def taken(rows: int) -> int:
        given = [
            Passage(str(row), f"row {row}", {"source": "t.csv", "start_index": 0})
            for row in range(rows)
        ]
        source = PassageNeighbours.of(given, KEYS)
        return lines_run(lambda: around(source, given[0], 1))

    assert taken(2000) < 3 * taken(1000)


SENTENCES = " ".join(
    f"Sentence {at} says that part {at} of the machine must be checked with care."
    for at in range(12)
)


def words(text: str) -> int:
    return len(text.split())


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
    source = PassageNeighbours.of(given, KEYS)
    for seed in given:
        found = around(source, seed)
        assert [chunk.text for chunk in found.run] == [passage.text for passage in given]
        assert stitch(found.run) == SENTENCES
        assert (found.before_end, found.after_end) == ("document", "document")


@pytest.mark.filterwarnings("error")
def test_lost_chunks_lie_where_they_came_among_several_texts_too() -> None:
    """The starts of one name hold within a heading only, and so do chunks without one."""
    given = [
        replace(each, metadata={**each.metadata, "heading": "Checks"}) for each in sentences()[:-1]
    ]
    other = Passage("other", "Another text.", {"source": "manual", "start_index": 0})
    source = index_of([*given, other]).neighbours()
    for seed in given:
        found = around(source, seed)
        assert run_ids(found) == [each.id for each in given]
        assert (found.before_end, found.after_end) == ("missing", "missing")


@pytest.mark.filterwarnings("error")
def test_a_lost_chunk_of_another_id_is_known_by_its_text() -> None:
    """A vector store may have given it an id of its own."""
    given = sentences()
    found = around(PassageNeighbours.of(given, KEYS), replace(given[3], id="of the store"), 1)
    assert run_ids(found) == ["manual2", "manual3", "manual4"]


STEPS = (
    "Step one: open the valve. Step two: NEVER light the pilot before purging. "
    "Step three: light the pilot. Step four: close the panel."
)


def steps(**hidden: object) -> list[Passage]:
    """Return a step a chunk; the second one has other metadata."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=50,
        chunk_overlap=0,
        separators=[". "],
        keep_separator="end",
        add_start_index=True,
    )
    given = split(STEPS, splitter)
    assert len(given) == 4
    given[1] = replace(given[1], metadata={**given[1].metadata, **hidden})
    return given


@pytest.mark.parametrize("heading", [None, "Steps"])
def test_a_small_chunk_that_is_filtered_out_ends_a_side(heading: str | None) -> None:
    """Though a splitter might have stripped as many characters; also among several texts."""
    given = steps(secret=True)
    if heading:
        given = [replace(each, metadata={**each.metadata, "heading": heading}) for each in given]
        given.append(Passage("other", "Another text.", {"source": "manual", "start_index": 0}))
    index = index_of(given)
    assert run_ids(around(index.neighbours(), given[0])) == [each.id for each in given[:4]]
    source = index.neighbours(where=lambda metadata: "secret" not in metadata)
    found = around(source, given[0])
    assert (run_ids(found), found.after_end) == (["manual0"], "missing")
    found = around(source, given[3])
    assert (run_ids(found), found.before_end) == (["manual2", "manual3"], "missing")


def test_a_chunk_of_a_later_state_parts_nothing() -> None:
    """A search works on one state; where it has no chunk, none is missing."""
    given = steps()
    index = index_of([given[0], *given[2:]])
    before = index.neighbours()
    put(index, [given[1]])
    assert run_ids(around(index.neighbours(), given[0])) == [each.id for each in given]
    assert run_ids(around(before, given[0])) == ["manual0", "manual2", "manual3"]


@pytest.mark.filterwarnings("error")
def test_what_an_update_leaves_behind_parts_and_disputes_nothing() -> None:
    """Its offsets are those of the former text, where now there is white space or another chunk."""
    before = " ".join(f"Former line {at} was rather long, says the manual." for at in range(20))
    after = " ".join(f"Line {at} is short." for at in range(50))
    splitter = RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0, add_start_index=True)
    index = index_of(split(before, splitter))
    index.neighbours()
    index.delete([each.id for each in split(before, splitter)])
    given = split(after, splitter, "new")
    given = [replace(each, metadata={**each.metadata, "source": "manual"}) for each in given]
    put(index, given)
    assert run_ids(around(index.neighbours(), given[0])) == [each.id for each in given]


def placed(start: int, text: str, name: str = "") -> Passage:
    return Passage(name or f"at {start}", text, {"source": "manual", "start_index": start})


def test_of_several_chunks_that_start_alike_the_longest_is_next_to_what_follows() -> None:
    """Both ways."""
    texts = ("The", "The valve", "The valve is open.")
    given = [*(placed(0, text, text) for text in texts), placed(19, "Close it.")]
    source = PassageNeighbours.of(given[::-1], KEYS)
    for seed in given:
        assert run_ids(around(source, seed)) == [*texts, "at 19"]
    assert run_ids(around(source, given[3], 1)) == [texts[2], "at 19"]
    assert run_ids(around(source, given[2], 1)) == [*texts[1:], "at 19"]


@pytest.mark.parametrize("gap", [MOST_STRIPPED, MOST_STRIPPED + 1])
def test_as_much_as_a_splitter_strips_is_no_hole(gap: int) -> None:
    """Between two chunks, and before the first one; a character more is."""
    given = [placed(gap, "One line."), placed(gap + 9 + gap, "Another line.")]
    found = around(index_of(given).neighbours(), given[0])
    whole = gap == MOST_STRIPPED
    assert len(found.run) == (2 if whole else 1)
    assert found.before_end == ("document" if whole else "missing")
    assert found.after_end == ("document" if whole else "missing")


def tails(**hidden: object) -> list[Passage]:
    """Return chunks, every second of which is lost and adds a few words to the one before it."""
    words = SENTENCES.split()
    texts = [" ".join(words[at : at + 8]) for at in range(0, 40, 8)]
    chunks = []
    for at, text in enumerate(texts):
        start = SENTENCES.index(text)
        cut = len(text) - 16
        chunks += [placed(start, text[:cut], f"{at}"), placed(-1, text[cut - 8 :], f"{at}b")]
    lost = chunks[3]
    chunks[3] = replace(lost, metadata={**lost.metadata, **hidden})
    return chunks


def test_a_small_lost_chunk_that_is_hidden_ends_a_side() -> None:
    """Filtered out, or deleted."""
    given = tails(secret=True)
    index = index_of(given)
    assert run_ids(around(index.neighbours(), given[0])) == [each.id for each in given]
    source = index.neighbours(where=lambda metadata: "secret" not in metadata)
    for deleted in (False, True):
        if deleted:
            index.delete([given[3].id])
            source = index.neighbours()
        found = around(source, given[2])
        assert (run_ids(found), found.after_end) == (["0", "0b", "1"], "missing")
        found = around(source, given[4])
        assert (run_ids(found)[0], found.before_end) == ("2", "missing")


def test_a_lost_chunk_that_came_elsewhere_has_no_neighbours() -> None:
    """Written anew by itself it comes last, and overlaps nothing; its former place is a hole."""
    given = sentences()
    index = index_of(given)
    assert run_ids(around(index.neighbours(), given[3], 1)) == ["manual2", "manual3", "manual4"]
    put(index, [replace(given[3], text=given[3].text.upper())])
    for _ in range(2):
        source = index.neighbours()
        found, last = around(source, given[3]), around(source, given[-1])
        assert run_ids(found) == ["manual3"]
        assert (found.before_end, found.after_end, last.after_end) == ("missing",) * 3
        assert around(source, given[2], 1).after_end == "missing"
        index.compact()
