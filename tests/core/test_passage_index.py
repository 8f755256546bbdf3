"""Passages under BM25 alone: what `PassageIndex` adds to the index of texts."""

from __future__ import annotations

import copy

import pytest
from rank_bm25 import BM25Okapi

from shared_core import BM25Index, HybridIndex, Passage
from shared_core.index import PassageIndex

TEXTS = ["red apple pie", "green apple", "red wine", "stale bread", "apple apple"]
PASSAGES = [
    Passage(f"p{row}", text, {"even": row % 2 == 0, "doc_id": "d", "chunk_id": row})
    for row, text in enumerate(TEXTS)
]


def built() -> PassageIndex:
    index = PassageIndex()
    index.add(PASSAGES)
    return index


def test_best_gives_passages_with_their_scores_best_first() -> None:
    expected = BM25Index.from_texts(TEXTS).scores("red apple")
    found = built().best("red apple", 9)
    assert [passage.id for passage, _ in found] == ["p0", "p2", "p4", "p1"]
    assert [score for _, score in found] == [expected[int(p.id[1])] for p, _ in found]
    assert [p.id for p, _ in built().best("apple", 1, where={"even": False})] == ["p1"]
    assert built().best("unknown", 3) == []


def test_scores_of_passages_are_by_id_only_where_the_text_is_the_same() -> None:
    index = built()
    here, moved = PASSAGES[1], Passage("foreign", TEXTS[1])
    merged = Passage("p1", "green apple pie and more")
    of_text = BM25Index.from_texts(TEXTS).score_texts("apple", [merged.text])[0]
    scores = index.scores("apple", [merged, here, moved, Passage("", "none")])
    assert scores[1] == scores[2] == index.scores("apple", [here])[0] > scores[0] == of_text > 0
    assert scores[3] == 0


def test_changes_keep_scores_equal_to_those_of_a_new_index() -> None:
    index = built()
    assert index.delete(["p3", "gone"]) == ["p3"]
    assert index.add([Passage("p0", "fresh bread"), Passage("p9", "apple")]) == ["p0", "p9"]
    assert index.ids == ["p1", "p2", "p4", "p0", "p9"]
    anew = PassageIndex()
    anew.add(index.passages)
    assert index.best("bread apple", 9) == anew.best("bread apple", 9)
    assert (len(index), index.count(), "p3" in index, index.get(["p9", "p3"])) == (
        5,
        5,
        False,
        [Passage("p9", "apple")],
    )


def test_nothing_is_added_if_one_passage_is_bad() -> None:
    index = built()
    for bad in (Passage("", "x"), Passage("p0", 3), Passage("p0", "x", None)):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="must be"):
            index.add([Passage("new", "x"), bad])
    assert index.passages == PASSAGES


def test_neighbours_are_the_passages_of_the_same_document() -> None:
    index = built()
    index.delete(["p3"])
    source = index.neighbours(where={"doc_id": "d"})
    (around,) = source.around([source.reader.chunk(PASSAGES[1])], 2)
    assert [chunk.id for chunk in (*around.before, *around.after)] == ["p0", "p2"]
    assert source.continuity([]) is None


def test_a_rank_bm25_object_is_taken_over() -> None:
    bm25 = BM25Okapi([text.split() for text in TEXTS])
    index = PassageIndex.from_rank_bm25(bm25, PASSAGES, tokenizer=str.split)
    expected = sorted(bm25.get_scores(["red", "wine"]), reverse=True)[:2]
    assert [score for _, score in index.best("red wine", 2)] == pytest.approx(expected)
    assert index.ids == [passage.id for passage in PASSAGES]
    with pytest.raises(ValueError, match="5 rows, got 4"):
        PassageIndex.from_rank_bm25(bm25, PASSAGES[1:], tokenizer=str.split)


@pytest.mark.parametrize("kind", [PassageIndex, HybridIndex])
def test_a_copy_of_a_subclass_keeps_its_attributes(kind: type[PassageIndex]) -> None:
    class Named(kind):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.name = "mine"

    copied = copy.copy(Named())
    assert (copied.name, len(copied)) == ("mine", 0)
