"""The hybrid index: what the model of its history does not say. Odd queries, bad input, batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared_core import HybridIndex, Passage
from shared_core.index import PassageIndex, snapshot
from shared_core.types import Query
from tests.core.making import content, found_ids, make_index, passages, random_vectors, zipf_texts

pytestmark = pytest.mark.usefixtures("either_way")

QUERY = random_vectors(1, seed=99)[0]
NAN = float("nan")


def test_k_beyond_the_corpus_gives_all_of_it() -> None:
    """Where no machine counts that far; a smaller fetch_k cuts nothing. Once empty it has none."""
    index = make_index(30)
    ids = found_ids(index.search("", QUERY, k=2**63, fetch_k=1))
    assert sorted(ids) == sorted(f"p{n}" for n in range(30))
    index.delete(ids)
    assert (found_ids(index.search("w1", QUERY)), index.dim) == ([], 8)


@pytest.mark.parametrize("dense", ["flat", "ivf"])
@pytest.mark.parametrize("where", [None, {"lang": "en"}])
def test_a_batch_gives_bit_for_bit_what_single_searches_give(dense: str, where: Any) -> None:
    """Every number of every ranking; texts may come as an array."""
    index = make_index(300, dense=dense)
    index.delete([f"p{n}" for n in range(0, 300, 11)])
    texts, vectors = zipf_texts(90, seed=5, longest=6), random_vectors(90, seed=6)
    for options in ({}, {"fusion": "rrf", "k": 7, "fetch_k": 15}):
        together = index.search_batch(np.array(texts), vectors, where=where, **options)  # type: ignore[arg-type]
        for ranking, text, vector in zip(together, texts, vectors, strict=True):
            assert ranking == index.search(text, vector, where=where, **options)  # type: ignore[arg-type]
            assert type(ranking.query) is str
    assert index.search_batch([], np.zeros((0, 8))) == []


def test_one_leg_alone_is_searched() -> None:
    """Best first, with its own scores, ties in insertion order."""
    index, query = make_index(100), Query("w4 w9", QUERY)
    (pool,) = index.pool([query], 100)
    by_id = dict(zip((each.id for each in pool.passages), pool.dense, strict=True))
    dense = index.search_leg("dense", query, 7, where={"lang": "en"})
    assert [score for _, score in dense] == [by_id[passage.id] for passage, _ in dense]
    expected = [p for p in pool.passages if p.metadata["lang"] == "en"]
    expected.sort(key=lambda passage: -by_id[passage.id])
    assert [passage for passage, _ in dense] == expected[:7]
    assert index.search_leg("sparse", query, 5) == index.best("w4 w9", 5)
    with pytest.raises(ValueError, match="the query has no vector"):
        index.search_leg("dense", Query("w4"), 5)


def test_results_are_plain_python_numbers() -> None:
    """A numpy float breaks JSON in both frameworks."""
    ranking = make_index(20).search("w1 w2", QUERY)
    for values in (ranking.scores, ranking.dense, ranking.sparse, ranking.sparse_norm):
        assert {type(value) for value in values} == {float}
    for ranks in (ranking.indices, ranking.dense_rank, ranking.sparse_rank):
        assert {type(rank) for rank in ranks} == {int}
    assert (type(ranking.alpha), type(ranking.nearest)) == (float, float)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 2.0}, "k must be an integer >= 1, got 2.0"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"fusion": "sum"}, "fusion must .* got 'sum'"),
        ({"where": "en"}, "filter .* got 'en'"),
        ({"vector": [1.0, 2]}, "expected|dimension"),
        ({"vector": [NAN] * 8}, "holds NaN"),
        ({"vector": [1e20] * 8}, "huge"),
        ({"text": None}, "a text must be a string, got None"),
    ],
)
def test_bad_queries_are_refused(options: dict[str, Any], message: str) -> None:
    """The message names the value; one at a time and in a batch."""
    index, asked = make_index(5), {"text": "w1", "vector": QUERY} | options
    with pytest.raises(ValueError, match=message):
        index.search(**asked)
    texts, vectors = ["w1", asked.pop("text")], [QUERY, asked.pop("vector")]
    with pytest.raises(ValueError, match=message):
        index.search_batch(texts, vectors, **asked)


def test_texts_and_vectors_must_be_as_many() -> None:
    """The message names both numbers; one text is no batch, for its letters would be queries."""
    with pytest.raises(ValueError, match="got 2 texts and 1 vectors"):
        make_index(5).search_batch(["a", "b"], [QUERY])
    with pytest.raises(ValueError, match="texts must be a list, got the string 'abc'"):
        make_index(5).search_batch("abc", [QUERY] * 3)


def test_what_an_index_shows_of_itself() -> None:
    """Length, dimension, look-up in the order that was asked for, and nothing of what is gone."""
    index = make_index(4)
    assert index.delete(["p3", "nope", 1.7, True, "p3"]) == ["p3"]  # type: ignore[list-item]
    assert (len(index), index.count(), index.dim, index.embeds) == (3, 3, 8, False)
    assert ("p1" in index, "p3" in index, 5 in index) == (True, False, False)
    assert [passage.id for passage in index.get(["p2", "nope", "p3", "p0"])] == ["p2", "p0"]
    assert repr(index) == "HybridIndex(3 passages, dim=8, dense='flat', variant='lucene')"
    for call in (index.get, index.delete):
        with pytest.raises(ValueError, match=r"ids must be a list, got the string 'p1'; give"):
            call("p1")


def fragile(text: str) -> list[str]:
    if "boom" in text:
        raise RuntimeError("tokenizer broke")
    return text.split()


@pytest.mark.parametrize(
    ("ids", "texts", "vectors", "message"),
    [
        ("xyx", "abc", np.ones((3, 2)), "id 'x' occurs twice, at positions 0 and 2"),
        (["x", 7], "ab", np.ones((2, 2)), "id of passage 1 .* got 7"),
        ("xy", "ab", [[1, 0], [NAN, 1]], "embedding of passage 'y' holds NaN"),
        ("ay", ["new word", "boom"], np.ones((2, 2)), "tokenizer broke"),
        ("xy", ["fine", [("x", 1)]], np.ones((2, 2)), "metadata of passage 'y' must be a mapping"),
    ],
)
def test_a_failed_add_adds_nothing(ids: Any, texts: Any, vectors: Any, message: str) -> None:
    """Neither the good half, nor the replacement of an old passage; and the next add works."""
    index = HybridIndex(tokenizer=fragile)
    with pytest.raises(ValueError, match="NaN"):
        index.add([Passage("a", "x")], [[NAN, 1.0, 2.0]])  # which decides no dimension
    old = [Passage("a", "old word"), Passage("b", "word")]
    index.add(old, np.eye(2))
    new = [
        Passage(id, "x", text) if isinstance(text, list) else Passage(id, text)  # type: ignore[arg-type]
        for id, text in zip(ids, texts, strict=True)
    ]
    before = content(index.search("old word", [1.0, 0.5]))
    with pytest.raises((ValueError, RuntimeError), match=message):
        index.add(new, vectors)
    assert index.passages == old
    assert content(index.search("old word", [1.0, 0.5])) == before
    more, fresh = Passage("c", "new word"), HybridIndex(tokenizer=fragile)
    index.add([more], [[1.0, 1.0]])
    fresh.add([*old, more], [[1, 0], [0, 1], [1, 1]])
    assert index.search("new word", [1.0, 0]) == fresh.search("new word", [1.0, 0])


def test_an_interrupted_add_leaves_nothing_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its passage was already in the list that all snapshots share."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    index, kept = make_index(3), Passage("kept", "another word")
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.add([Passage("lost", "word")], [QUERY])
    index.add([kept], [QUERY])
    assert index.search("another word", QUERY, k=1).passages == [kept]
    assert index.passages[3:] == [kept]


def test_scores_of_passages_are_by_id_only_where_the_text_is_the_same() -> None:
    """One that was merged, or has another id, is scored by its text."""
    index = PassageIndex()
    index.add(passages(["red apple pie", "green apple", "red wine"]))
    here, moved = Passage("p1", "green apple"), Passage("foreign", "green apple")
    merged = Passage("p1", "green apple pie and more")
    scores = index.scores("pie apple", [merged, here, moved, Passage("", "none")])
    assert scores[1] == scores[2]
    assert scores[0] == index.scores("pie apple", [Passage("x", merged.text)])[0] != scores[1]
    assert scores[3] == 0
