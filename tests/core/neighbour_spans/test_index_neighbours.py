"""Neighbours among the passages of an index, and spans out of `CAUS`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, HybridIndex, Passage
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import (
    Chunk,
    ExpandedArrangement,
    Links,
    NeighbourSpans,
    PassageNeighbours,
    expand_passages,
)
from shared_core.placement import UShape
from shared_core.types import Query
from tests.core.neighbour_spans.making import around, index_of, neighbours, put, run_ids

KEYS = ChunkKeys()
SPANS = NeighbourSpans(window=1, token_budget=None)


def passage(document: str, number: int, **metadata: Any) -> Passage:
    text = f"part {number} of {document} says {document}{number}."
    return Passage(
        f"{document}{number}", text, {"doc_id": document, "chunk_id": number, **metadata}
    )


def passages() -> list[Passage]:
    return [passage(document, number) for document in "abc" for number in range(6)]


def search(index: HybridIndex, caus: CAUS, query: str, where: Any = None) -> ExpandedArrangement:
    found = caus.search(index, [Query(query, np.ones(8))], where=where)[0]
    assert isinstance(found, ExpandedArrangement)
    return found


def test_documents_are_read_once_and_again_after_a_change() -> None:
    """From query to query, for each filter; not with a function, which may change its mind."""
    index = index_of(passages())
    for where in (None, {"doc_id": "a"}, {"doc_id": "a"}, lambda metadata: True):
        around(neighbours(index, where=where), passage("a", 2))
    assert [key[1] for key in index.sources] == [("doc_id", "a")] * 2
    put(index, [passage("a", 6)])
    assert len(around(neighbours(index), passage("a", 2)).run) == 7


def test_long_arrays_are_filters_of_their_own() -> None:
    """NumPy writes two that differ in the middle alike."""
    index, some = index_of(passages()), np.arange(2000)
    others = np.where(some == 1000, -1, some)
    put(index, [passage("d", 0, n=1), passage("d", 1, n=1000)])
    for n, expected in ((some, ["d0", "d1"]), (others, ["d0"])):
        found = around(neighbours(index, where={"n": n}), passage("d", 0, n=1))
        assert run_ids(found) == expected


@pytest.mark.parametrize("name", [7, 7.5, ("a", 1), None])
def test_documents_may_be_named_by_any_value(name: object) -> None:
    """As the metadata have it; None is no name."""
    given = [Passage(str(n), f"part {n}", {"source": name, "chunk_id": n}) for n in range(3)]
    found = around(neighbours(index_of(given)), given[1])
    assert run_ids(found) == (["1"] if name is None else ["0", "1", "2"])


@pytest.mark.parametrize("where", [{"tenant": 1}, lambda metadata: metadata["tenant"] == 1])
def test_neighbours_pass_the_filter(where: Any) -> None:
    """Two tenants with a document of the same name: neither ever sees the other's."""
    given = [
        replace(passage("handbook", number, tenant=tenant), id=f"{tenant}-{number}")
        for tenant in (0, 1)
        for number in range(4 + tenant)
    ]
    given[-2] = replace(given[-2], metadata={**given[-2].metadata, "tenant": 0})
    index = index_of(given)
    found = around(neighbours(index, where=where), given[5], 2)
    assert run_ids(found) == ["1-0", "1-1", "1-2"]
    spans = search(index, CAUS(k=2, expand=SPANS), "part 1 handbook", where).spans
    assert {chunk.id[0] for span in spans for chunk in span.chunks} == {"1"}


def starting(starts: Iterable[int], text: str = "x" * 90, **metadata: Any) -> list[Passage]:
    return [
        Passage(f"s{start}", text, {"source": "f.md", "start_index": start, **metadata})
        for start in starts
    ]


def test_pages_are_texts_of_their_own_where_starts_tell() -> None:
    """A loader that gives a page a text lets the splitter begin at 0 on each."""
    first, second = starting([0, 80], page=0), starting([0, 80], text="y" * 90, page=1)
    second = [replace(each, id=f"second{each.id}") for each in second]
    index = index_of([*first, *second])
    assert run_ids(around(neighbours(index), second[0])) == ["seconds0", "seconds80"]


def texts_of_one_name(**metadata: dict[str, Any]) -> list[Passage]:
    """Return chunks of two texts, each of which starts at 0, under one name."""
    given = []
    for name, starts in (("s", (0, 80, 160)), ("t", (0, 85, 170, 255))):
        for start in starts:
            known = {"source": "f.md", "start_index": start, **metadata.get(name, {})}
            given.append(Passage(f"{name}{start}", f"{name}{start:04}" * 18, known))
    return given


@pytest.mark.filterwarnings("error")
def test_chunks_of_several_texts_under_one_name_have_no_neighbours() -> None:
    """None of them, wherever it starts, as nobody knows whose neighbour is whose; said once."""
    given = texts_of_one_name()
    other = starting([0, 80], source="other.md")
    index = index_of([*given, *(replace(each, id=f"o{each.id}") for each in other)])
    with pytest.warns(UserWarning, match=r"'s0' and 't0' both start at 0 of .*'f\.md'"):
        around(neighbours(index), given[-1])
    for each in given:
        assert run_ids(around(neighbours(index), each)) == [each.id]
    assert run_ids(around(neighbours(index), replace(other[0], id="os0"))) == ["os0", "os80"]
    unknown = replace(given[3], id="of the store")  # by its text, not by where it stands
    with pytest.warns(UserWarning, match="several texts"):
        assert around(PassageNeighbours(given, KEYS), unknown, 1).seed.id == "t0"


@pytest.mark.filterwarnings("error")
def test_headings_tell_sections_that_start_alike_apart() -> None:
    """As a splitter that works on the sections of a document makes them."""
    given = texts_of_one_name(t={"Header 1": "T"})
    index = index_of(given)
    assert run_ids(around(neighbours(index), given[4])) == ["t0", "t85", "t170", "t255"]
    assert run_ids(around(neighbours(index), given[1])) == ["s0", "s80", "s160"]


def test_two_chunks_of_one_number_end_all_sides_unless_they_are_the_same() -> None:
    """A document that was added twice has twins, which do no harm."""
    twin = replace(passage("a", 1), id="twin")
    index = index_of([*passages(), twin])
    assert run_ids(around(neighbours(index), passage("a", 0), 2)) == ["a0", "a1", "a2"]
    put(index, [replace(twin, text=f"{twin.text} And more.")])
    with pytest.warns(UserWarning, match="'a1' and 'twin' both are number 1 of document 'a'"):
        assert run_ids(around(neighbours(index), passage("a", 0))) == ["a0"]
    assert run_ids(around(neighbours(index), passage("b", 4), 1)) == ["b3", "b4", "b5"]


@pytest.mark.parametrize(
    ("metadata", "number", "start"),
    [
        # some stores know numbers as floats only, some as text
        *(({"chunk_id": number}, 3, None) for number in (3.0, "3", np.int64(3))),
        *(({"chunk_id": number, "start_index": 40}, None, 40) for number in ("3a", 3.5, True)),
        # LangChain's splitters write -1 where they lose track
        *(({"start_index": start}, None, None) for start in (-1, "top")),
    ],
)
def test_places_are_read_as_stores_give_them_back(
    metadata: dict[str, Any], number: int | None, start: int | None
) -> None:
    """What is no number is unknown; where the start is known, it tells."""
    chunk = KEYS.chunk(Passage("p", "text", {"doc_id": 7, **metadata}))
    assert (chunk.document, chunk.number, chunk.start) == ("7", number, start)


@pytest.mark.parametrize("metadata", [{}, {"doc_id": "d"}, {"chunk_id": 3}, {"start_index": 0}])
def test_a_passage_that_tells_no_place_stands_alone(metadata: dict[str, Any]) -> None:
    """It is found as before; if none tells a place, that is said."""
    index = index_of([Passage("p", "part of nothing", metadata), *passages()])
    assert run_ids(around(neighbours(index), Passage("p", "part of nothing", metadata))) == ["p"]
    alone = index_of([Passage("p", "part of nothing", metadata)])
    with pytest.warns(UserWarning, match="no passage says which chunk"):
        found = search(alone, CAUS(expand=SPANS), "nothing")
    assert [passage.text for passage in found.passages] == ["part of nothing"]


def test_k_passages_become_at_most_k_spans_that_explain_themselves() -> None:
    """Gate and placement see spans; the fused score lives on as the similarity."""
    index = index_of(passages())
    found = search(index, CAUS(k=3, alpha=0.3, psi="always", expand=SPANS), "b2 b3 c0")
    plain = CAUS(k=3, alpha=0.3).search(index, [Query("b2 b3 c0", np.ones(8))])[0]
    assert found.seeds == plain.ranking
    assert found.slots == UShape()(len(found.spans))
    assert [p.text for p in found.passages] == [span.text for span in found.spans]
    assert {chunk.id for span in found.spans for chunk in span.chunks} >= {"b1", "b2", "b3", "b4"}
    fused = dict(zip((p.id for p in plain.passages), plain.scores, strict=True))
    for passage_, why, score in zip(found.passages, found.explain(), found.scores, strict=True):
        assert why["similarity"] == fused[passage_.id] == max(why["seeds"].values())
        assert (why["score"], why["dense_rank"] >= 0) == (score, True)
        assert type(score) is float


class Linked:
    """Reads links from the metadata."""

    def chunk(self, passage: Passage) -> Chunk:
        return Chunk(passage.id, passage.text, "d", start=0, source=passage)

    def links(self, passage: Passage) -> Links | None:
        links = Links(passage.metadata.get("before"), passage.metadata.get("after"))
        return links if links.any else None

    def document_of(self, passage: Passage) -> tuple[str, str]:
        return "document", "d"


def linked(id: str, before: str | None = None, after: str | None = None) -> Passage:
    return Passage(id, f"text of {id}", {"document": "d", "before": before, "after": after})


def linked_around(index: HybridIndex, id: str) -> str:
    (found,) = neighbours(index, Linked()).around([Chunk(id, "", "d", source=linked(id))], 9)
    return "".join(run_ids(found))


def test_links_of_one_direction_are_followed_in_both() -> None:
    index = index_of([linked("a"), *map(linked, "bcd", "abc")])
    for name in "abcd":
        assert linked_around(index, name) == "abcd"
    index.delete(["c"])
    for _ in range(2):
        assert linked_around(index, "b") == "ab"
        assert linked_around(index, "d") == "d"
        index.compact()
    ring = index_of([linked("a", "c", "b"), linked("b", "a", "c"), linked("c", "b", "a")])
    assert linked_around(ring, "a") == "bcabc"
    forwards = index_of([*(linked(a, None, b) for a, b in ("ab", "bc", "cd")), linked("d")])
    for name in "abcd":
        assert linked_around(forwards, name) == "abcd"
    own = index_of([linked("a", None, "b"), linked("b", "a"), linked("c", "a")])
    assert linked_around(own, "a") == "ab", "its own link comes before what others say"


def test_two_that_claim_one_place_are_both_left_out() -> None:
    """Until one of them is gone, or says otherwise."""
    index = index_of([linked("a"), linked("b", "a"), linked("c", "a")])
    assert linked_around(index, "a") == "a"
    index.delete(["c"])
    assert linked_around(index, "a") == "ab"
    put(index, [linked("c", "a")])
    assert linked_around(index, "a") == "a"
    put(index, [linked("c", "b")])
    assert linked_around(index, "a") == "abc"


def test_passages_in_memory_are_known_by_id_or_by_place() -> None:
    """A vector store may have given them other ids, or none."""
    source = PassageNeighbours([replace(each, id="") for each in passages()], KEYS)
    found = around(source, replace(passage("b", 0), id="of the store"), 1)
    assert [chunk.number for chunk in found.run] == [0, 1]
    with pytest.raises(ValueError, match=r"two chunks .* have the id 'a1': give each its own id"):
        PassageNeighbours([passage("a", 1), replace(passage("b", 1), id="a1")], KEYS)


@pytest.mark.parametrize("place", [{"start_index": 0}, {"chunk_id": 0}])
def test_rows_without_an_id_that_share_a_place_are_spans_of_their_own(
    place: dict[str, int],
) -> None:
    """As a loader of tables makes them: a warning leads to the key that tells them apart."""
    rows = [Passage("", f"name: person {at}", {"source": "people.csv", **place}) for at in range(3)]
    with pytest.warns(UserWarning, match=r"several texts share.*ChunkKeys\(document=\.\.\.\)"):
        found, places = expand_passages(rows, [0.9, 0.5, 0.1], SPANS, KEYS, None)
    assert [span.text for span in found.spans] == [row.text for row in rows]
    assert places == [[0], [1], [2]]
