"""Chunks in memory: what may be put in, what comes out, and what is said about the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.expansion import Chunk, ChunkTable, Seed
from tests.core.expansion.making import prose, row, split

TABLE = split(prose(100))


@pytest.mark.parametrize(
    ("number", "before", "after", "ends"),
    [
        (0, "", "12", ("document", "more")),
        (1, "0", "23", ("document", "more")),
        (2, "01", "34", ("more", "more")),
        (8, "67", "", ("more", "document")),
    ],
)
def test_neighbours_come_in_the_order_of_the_document(
    number: int, before: str, after: str, ends: tuple[str, str]
) -> None:
    """On both sides, with what lies beyond."""
    (found,) = ChunkTable(TABLE).around([TABLE[number]], 2)
    assert [chunk.id for chunk in found.before] == [f"d{each}" for each in before]
    assert [chunk.id for chunk in found.after] == [f"d{each}" for each in after]
    assert (found.before_end, found.after_end) == ends
    assert found.section_size == len(TABLE)


def test_a_gap_in_the_numbers_is_a_missing_chunk() -> None:
    """Wherever the numbers begin, and whichever way one comes."""
    sparse = [replace(TABLE[0], id=str(n), number=n) for n in (7, 8, 10, 30)]
    at_8, at_10, at_30 = ChunkTable(sparse).around([sparse[1], sparse[2], sparse[3]], 3)
    assert [chunk.id for chunk in at_8.run] == ["7", "8"]
    assert (at_8.before_end, at_8.after_end) == ("document", "missing")
    assert (at_10.run, at_10.before_end, at_10.after_end) == ((sparse[2],), "missing", "missing")
    assert (at_30.run, at_30.before_end, at_30.after_end) == ((sparse[3],), "missing", "document")


def test_a_seed_is_known_by_its_place_where_its_id_is_not() -> None:
    """A retriever may give chunks ids of its own."""
    (found,) = ChunkTable(TABLE).around([replace(TABLE[3], id="other")], 1)
    assert found.seed is TABLE[3]
    (stranger,) = ChunkTable(TABLE).around([Chunk("other", "text", "elsewhere", 3)], 1)
    assert (stranger.run, stranger.section_size) == (
        (Chunk("other", "text", "elsewhere", 3),),
        None,
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 11)), max_size=40))
def test_adding_and_deleting_leaves_what_was_put_in_last(steps: list[tuple[bool, int]]) -> None:
    """The same answers as a table made afresh, embeddings included."""
    chunks = split(prose(200), headings=[("A",)] * 5 + [("B",)] * 13)
    vectors = np.random.default_rng(0).normal(size=(12, 4))
    table, there = ChunkTable(), set()
    for adding, at in steps:
        if adding:
            table.add([chunks[at]], vectors[[at]])
            there.add(at)
        else:
            assert table.delete([chunks[at].id, "nobody"]) == [chunks[at].id] * (at in there)
            there.discard(at)
    rows = sorted(there)
    afresh = ChunkTable([chunks[at] for at in rows], vectors[rows])
    assert {*table} == {*afresh}
    assert len(table) == len(rows)
    assert table.around(chunks[:12], 3) == afresh.around(chunks[:12], 3)
    pairs = [(chunks[at], chunks[at + 1]) for at in range(11)]
    for one, other in zip(table.continuity(pairs), afresh.continuity(pairs), strict=True):
        assert one == (other if other is None else pytest.approx(other))


def test_an_id_that_is_there_already_is_replaced() -> None:
    """Text, place and all."""
    table = ChunkTable(TABLE)
    table.add([replace(TABLE[3], text="new", number=40)])
    assert [chunk.text for chunk in table.get(["d3", "nobody"])] == ["new"]
    assert table.around([TABLE[2]], 1)[0].after_end == "missing"
    assert len(table) == len(TABLE)


def test_two_chunks_may_change_places() -> None:
    """Within one call, since both are replaced."""
    table = ChunkTable(TABLE)
    table.add([replace(TABLE[0], number=1), replace(TABLE[1], number=0)])
    assert [chunk.id for chunk in table.around([TABLE[0]], 1)[0].run] == ["d1", "d0", "d2"]


def test_the_callers_vectors_are_copied() -> None:
    """What happens to them afterwards does not matter."""
    vectors = np.ones((2, 3), np.float32)
    table = ChunkTable(TABLE[:2], vectors)
    vectors[0] *= -1
    assert table.continuity([(TABLE[0], TABLE[1])]) == [pytest.approx(1)]


def test_a_cosine_is_at_most_one() -> None:
    """Also where float32 rounds the product of a unit vector with itself up."""
    chunks = split(prose(1200))
    vectors = np.random.default_rng(0).normal(size=(len(chunks), 8))
    found = ChunkTable(chunks, vectors).continuity([(chunk, chunk) for chunk in chunks])
    assert all(cosine is not None and 0.99999 < cosine <= 1 for cosine in found)


def refused(match: str, chunks: list[Chunk], vectors: object = None) -> None:
    """Assert that a table refuses chunks, and is as it was."""
    table = ChunkTable(TABLE[:2], np.ones((2, 3)))
    with pytest.raises(ValueError, match=match):
        table.add(chunks, vectors)  # type: ignore[arg-type]
    assert [*table] == TABLE[:2]
    assert table.continuity([(TABLE[0], TABLE[1])]) == [pytest.approx(1)]


def test_what_does_not_fit_is_refused_as_a_whole() -> None:
    """With the name of what is wrong."""
    refused("'d5' occurs twice", [TABLE[4], TABLE[5], TABLE[5]])
    refused("'d0' and 'new' are both number 0 of", [TABLE[4], replace(TABLE[0], id="new")])
    refused("'d4' and 'new' are both number 4 of", [TABLE[4], replace(TABLE[4], id="new")])
    refused("'d4' has no number", [replace(TABLE[4], number=None)])
    refused("expected 1 vectors", [TABLE[4]], np.ones((2, 3)))
    refused("dimension 3, got dimension 2", [TABLE[4]], np.ones((1, 2)))
    refused("NaN or infinite", [TABLE[4]], [[0, np.nan, 0]])


@pytest.mark.parametrize("number", ["3", 3.0, True, "c0ffee"])
def test_a_number_is_an_integer(number: object) -> None:
    """Numbers that are read from metadata as texts would not be next to each other."""
    with pytest.raises(ValueError, match=r"number of chunk 'd0' must be an integer.*convert it"):
        row("text", number=number)
    with pytest.raises(ValueError, match="start of chunk 'd0' must be an integer"):
        row("text", start=number)


def test_numpy_integers_are_integers() -> None:
    """And become Python's."""
    (chunk,) = row("text", number=np.int64(3), start=np.int32(7))
    assert (type(chunk.number), type(chunk.start), chunk.end) == (int, int, 11)


@pytest.mark.parametrize(
    ("fields", "match"),
    [({"id": ""}, "not empty"), ({"id": 3}, "got 3"), ({"start": -1}, "start of chunk 'd0'")],
)
def test_other_fields_out_of_range_are_refused(fields: dict[str, object], match: str) -> None:
    """By their value."""
    with pytest.raises(ValueError, match=match):
        row("text", **fields)


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_seed_has_a_finite_score(score: float) -> None:
    """Nothing can be ordered by another."""
    with pytest.raises(ValueError, match="score of 'd0' must be finite"):
        Seed(TABLE[0], score)


def test_documents_give_what_stands_between() -> None:
    """Where they are known."""
    table = ChunkTable(documents={"d": "0123456789"})
    assert table.text_between("d", 3, 5) == "34"
    assert table.text_between("e", 3, 5) is None
