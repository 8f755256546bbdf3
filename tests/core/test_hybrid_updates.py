"""Adding, replacing and deleting: what changes, what does not, and all or nothing."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import HybridIndex, Passage
from shared_core.index.sparse import snapshot as sparse_view

from .making import (
    assert_same,
    content,
    found_ids,
    make_index,
    passages,
    preselect_from,
    random_vectors,
    zipf_texts,
)

pytestmark = pytest.mark.usefixtures("either_way")

QUERIES = [*zip(["w0 w1", "w3 w8 w8", "w40", ""], random_vectors(4, seed=99), strict=True)]

small_sets = st.sets(st.integers(0, 39), max_size=40)


def results(index: HybridIndex, k: int = 10) -> list[object]:
    return [
        content(index.search(text, vector, k=k, alpha=alpha))
        for text, vector in QUERIES
        for alpha in (0.0, 0.3, 1.0)
    ]


def same_results(one: HybridIndex, other: HybridIndex) -> None:
    for text, vector in QUERIES:
        for alpha in (0.0, 0.3, 1.0):
            assert_same(
                one.search(text, vector, alpha=alpha),
                other.search(text, vector, alpha=alpha),
                tolerance=1e-9,
            )


@given(seed=st.integers(0, 100), added=st.integers(1, 60), parts=st.integers(1, 4))
def test_adding_then_deleting_leaves_every_result_as_it_was(
    seed: int, added: int, parts: int
) -> None:
    """Bit for bit: no statistic remembers what was there for a while."""
    index = make_index(40, seed=seed % 7)
    before = results(index)
    texts, vectors = zipf_texts(added, seed=seed + 1), random_vectors(added, seed=seed + 1)
    for part in np.array_split(np.arange(added), parts):
        new = [Passage(f"x{row}", texts[row] + " new words") for row in part]
        index.add(new, vectors[part]) if new else None
    assert len(index) == 40 + added
    index.delete(f"x{row}" for row in range(added))
    assert results(index) == before
    index.compact()
    same_results(index, make_index(40, seed=seed % 7))


@given(deleted=small_sets, seed=st.integers(0, 20))
@settings(max_examples=30)
def test_deleting_equals_an_index_of_the_rest(deleted: set[int], seed: int) -> None:
    """Before and after compaction, to 1e-9, also where all is deleted."""
    index, rest = make_index(40, seed=seed), HybridIndex()
    texts, vectors = zipf_texts(40, seed=seed), random_vectors(40, seed=seed)
    remaining = [row for row in range(40) if row not in deleted]
    rest.add([passages(texts)[row] for row in remaining], vectors[remaining])
    assert sorted(index.delete(f"p{row}" for row in deleted)) == sorted(
        f"p{row}" for row in deleted
    )
    assert index.ids == rest.ids
    same_results(index, rest)
    index.compact()
    assert index.ids == rest.ids
    same_results(index, rest)


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "delete", "compact"]), st.sets(st.integers(0, 9))),
        max_size=12,
    )
)
def test_any_history_equals_its_outcome(history: list[tuple[str, set[int]]]) -> None:
    """Upserts, deletions and compactions in any order: the same as a fresh index of the rest."""
    texts, vectors = zipf_texts(200, seed=4), random_vectors(200, seed=4)
    index, expected, version = HybridIndex(), {}, 0
    for action, numbers in history:
        ids = [f"p{number}" for number in sorted(numbers)]
        if action == "add":
            new = {id: (texts[version + at], vectors[version + at]) for at, id in enumerate(ids)}
            version += len(ids)
            index.add(
                [Passage(id, text) for id, (text, _) in new.items()], [v for _, v in new.values()]
            )
            for id in ids:  # a replaced one moves to the end
                expected.pop(id, None)
            expected |= new
        elif action == "delete":
            assert index.delete(ids) == [id for id in ids if expected.pop(id, None) is not None]
        else:
            index.compact()
        assert index.ids == list(expected)
        assert [id for id in (f"p{n}" for n in range(10)) if id in index] == sorted(expected)
    fresh = HybridIndex()
    fresh.add(
        [Passage(id, text) for id, (text, _) in expected.items()], [v for _, v in expected.values()]
    )
    same_results(index, fresh)


def test_the_index_compacts_by_itself_once_most_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The memory of deleted passages comes back without a call, and nothing else changes."""
    monkeypatch.setattr(sparse_view, "COMPACT", 30)
    index = make_index(40)
    index.delete(f"p{n}" for n in range(20))
    assert index._state.size == 40
    before = results(index)
    index.delete(["p20"])
    assert index._state.size == len(index) == 19
    assert index._state.dense.size == 19
    index.add([passages(zipf_texts(40))[20]], random_vectors(40)[20:21])
    assert found_ids(index.search("w1", QUERIES[0][1], k=40))
    assert index.ids == [*(f"p{n}" for n in range(21, 40)), "p20"]
    assert before != []


def test_an_upsert_replaces_and_moves_to_the_end() -> None:
    """One passage per id; the old text and vector are found no more."""
    index = HybridIndex()
    index.add([Passage("a", "old"), Passage("b", "other")], np.eye(2))
    assert index.add([Passage("a", "new")], [[0.0, 1.0]]) == ["a"]
    assert (index.ids, len(index)) == (["b", "a"], 2)
    assert index.get(["a"])[0].text == "new"
    assert index.search("old", [1.0, 0.0]).sparse_norm == [0, 0]
    ranking = index.search("new", [0.0, 1.0], k=2)
    assert found_ids(ranking) == ["a", "b"]
    assert ranking.dense == [1, 1]


def by_pickle(index: HybridIndex) -> HybridIndex:
    return pickle.loads(pickle.dumps(index))


@pytest.mark.parametrize("copied", [copy, deepcopy, by_pickle])
@pytest.mark.parametrize("dense", ["flat", "ivf"])
def test_a_copy_is_apart_from_the_original(
    copied: Callable[[HybridIndex], HybridIndex], dense: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the same, deleted rows included, and neither sees what the other adds."""
    preselect_from(100, monkeypatch)
    index = make_index(200, dense=dense)
    index.delete([f"p{n}" for n in range(0, 90, 3)])
    index.add([Passage("p7", "w1 w2")], random_vectors(1, 8, seed=4))
    query = random_vectors(1, 8, seed=5)[0]
    before = index.search("w1 w2", query, k=60)
    other = copied(index)
    assert other.search("w1 w2", query, k=60) == before
    other.delete(other.ids)
    other.add([Passage("new", "w1 w2")], [query])
    assert index.search("w1 w2", query, k=60) == before
    index.add([Passage("p7", "other")], [query])
    assert other.ids == ["new"]
    assert copied(HybridIndex()).search("w1", query).indices == []


@pytest.mark.parametrize("copied", [copy, deepcopy, by_pickle])
@pytest.mark.parametrize("rows", [0, 5])
def test_a_copy_and_the_original_go_on_by_themselves(
    copied: Callable[[HybridIndex], HybridIndex], rows: int
) -> None:
    """Neither's vectors, words or extra values come from what the other was given later."""
    index = make_index(rows)
    index.add([Passage("first", "w0")], random_vectors(1, seed=1))
    index.add([Passage("second", "w1")], random_vectors(1, seed=2))
    index.extra["options"] = {"k": 1}
    other = copied(index)
    index.extra["options"]["k"] = 2
    added = {index: ("mine", [1.0] + [0.0] * 7), other: ("yours", [0.0] * 7 + [1.0])}
    for each, (word, vector) in added.items():
        each.add([Passage("new", word)], [vector])
    for each, (word, vector) in added.items():
        assert each.embedded()[1][-1].tolist() == vector
        assert each.search(word, vector, k=1).sparse[0] > 0
        for _, (foreign, _) in added.items():
            assert any(each.search(foreign, vector).sparse) == (foreign == word)
    assert (index.extra, other.extra) == ({"options": {"k": 2}}, {"options": {"k": 1}})


def test_one_text_is_no_list_of_ids() -> None:
    """Its letters may be ids."""
    index = HybridIndex()
    index.add([Passage(letter, letter) for letter in "abc"], np.eye(3))
    for call in (index.get, index.delete):
        with pytest.raises(ValueError, match=r"ids must be a list, got the string 'abc'; give"):
            call("abc")
    assert index.ids == ["a", "b", "c"]


def test_deleting_says_what_was_there() -> None:
    """Unknown ids are ignored, ids given twice count once, deleted ones are gone."""
    index = make_index(5)
    assert index.delete(["p3", "nope", "p1", "p3"]) == ["p3", "p1"]
    assert index.delete(["p3"]) == []
    assert index.delete([]) == []
    assert index.ids == ["p0", "p2", "p4"]
    assert "p3" not in index
    assert index.get(["p3", "p4"])[0].id == "p4"


def test_adding_nothing_changes_nothing() -> None:
    """An empty list is not an error, in an empty index neither."""
    index = HybridIndex()
    assert index.add([], []) == []
    assert index.dim is None
    index.add([Passage("a", "x")], [[1.0]])
    assert index.add([], np.zeros((0, 99))) == []


def fragile(text: str) -> list[str]:
    if "boom" in text:
        raise RuntimeError("tokenizer broke")
    return text.split()


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("ids", "texts", "vectors", "error", "message"),
    [
        ("xyx", "abc", np.ones((3, 2)), ValueError, "id 'x' occurs twice, at positions 0 and 2"),
        (["x", ""], "ab", np.ones((2, 2)), ValueError, "id of passage 1 must be a non-empty"),
        (["x", 7], "ab", np.ones((2, 2)), ValueError, "id of passage 1 .* got 7"),
        ("xy", "ab", [[1, 0], [NAN, 1]], ValueError, "embedding of passage 'y' holds NaN"),
        ("xy", "ab", [[1, 0], [INF, 1]], ValueError, "embedding of passage 'y' holds NaN"),
        ("xy", "ab", np.ones((2, 3)), ValueError, "dimension 2, got dimension 3"),
        ("xy", "ab", np.ones((1, 2)), ValueError, "expected 2 embeddings"),
        ("xy", "ab", [[1, 0], [1]], ValueError, "passage 'y' has dimension 1, .* 'x' has 2"),
        ("xy", "ab", [[1, 0], None], ValueError, "embedding of passage 'y' is not numbers"),
        ("xy", "ab", [], ValueError, "expected 2 embeddings"),
        ("xy", ["new word", "boom"], np.ones((2, 2)), RuntimeError, "tokenizer broke"),
        ("ay", ["new word", "boom"], np.ones((2, 2)), RuntimeError, "tokenizer broke"),
        ("xy", ["fine", None], np.ones((2, 2)), ValueError, "text of passage 'y' must .* got None"),
    ],
)
def test_a_failed_add_adds_nothing(
    ids: object, texts: object, vectors: object, error: type, message: str
) -> None:
    """Neither the good half, nor the replacement of an old passage; and the next add works."""
    index = HybridIndex(tokenizer=fragile)
    index.add([Passage("a", "old word"), Passage("b", "word")], np.eye(2))
    before = content(index.search("old word", [1.0, 0.5]))
    new = [Passage(id, text) for id, text in zip(ids, texts, strict=True)]  # type: ignore[call-overload]
    with pytest.raises(error, match=message):
        index.add(new, vectors)  # type: ignore[arg-type]
    assert index.ids == ["a", "b"]
    assert content(index.search("old word", [1.0, 0.5])) == before
    assert index.search("new", [1.0, 0.5]).sparse == [0, 0]

    index.add([Passage("c", "new word")], [[1.0, 1.0]])
    fresh = HybridIndex(tokenizer=fragile)
    fresh.add(
        [Passage("a", "old word"), Passage("b", "word"), Passage("c", "new word")],
        [[1, 0], [0, 1], [1, 1]],
    )
    assert_same(
        index.search("new word", [1.0, 0]), fresh.search("new word", [1.0, 0]), tolerance=1e-9
    )


@pytest.mark.parametrize("metadata", [None, "en", [("lang", "en")]])
def test_metadata_that_are_no_mapping_are_refused(metadata: Any) -> None:
    """Filters, neighbours and saving would fail later."""
    index = make_index(3)
    with pytest.raises(ValueError, match=r"metadata of passage 'b' must be a mapping, got "):
        index.add([Passage("a", "x"), Passage("b", "x", metadata)], random_vectors(2))
    assert index.ids == ["p0", "p1", "p2"]


def test_the_first_add_decides_the_dimension_and_a_failed_one_does_not() -> None:
    """An index that refused its first vectors takes any dimension still."""
    index = HybridIndex()
    with pytest.raises(ValueError, match="NaN"):
        index.add([Passage("a", "x")], [[NAN, 1.0, 2.0]])
    assert index.dim is None
    index.add([Passage("a", "x")], [[1.0]])
    assert index.dim == 1


@pytest.mark.parametrize("compacted", [False, True])
def test_an_emptied_index_is_as_free_or_bound_as_before_compaction(compacted: bool) -> None:
    """`dim` is that of the vectors it ever held, whether their memory was freed or not."""
    index = make_index(3)
    index.delete(index.ids)
    if compacted:
        index.compact()
    assert index.dim == 8


def test_passages_that_come_one_by_one_are_an_index_built_at_once() -> None:
    """Segments and memory grow in steps; results do not depend on them."""
    texts, vectors = zipf_texts(120, seed=3), random_vectors(120, seed=3)
    index = HybridIndex()
    for passage, vector in zip(passages(texts), vectors, strict=True):
        index.add([passage], [vector])
    together = HybridIndex()
    together.add(passages(texts), vectors)
    same_results(index, together)


def test_equal_passages_rank_in_insertion_order_at_any_size() -> None:
    """Same text, same vector: a tie in everything."""
    for copies in range(2, 12):
        for terms in range(1, 6):
            stops = [f"s{n}" for n in range(terms)]
            text = "rare " + " ".join(
                " ".join([word] * (1 + at % 3)) for at, word in enumerate(stops)
            )
            rng = np.random.default_rng(copies)
            rest = [" ".join(w for w in stops if rng.random() < 0.5) for _ in range(200)]
            index = HybridIndex()
            index.add(passages([text] * copies + rest), np.ones((copies + 200, 2)))
            ranking = index.search("rare " * 9 + " ".join(stops), [1.0, 0.0], k=copies)
            assert ranking.indices == list(range(copies))
