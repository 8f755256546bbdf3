"""Hybrid search: the pool, the fusion, the options, and what an odd query gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import BM25Index, HybridIndex, Passage

from .making import (
    BruteForce,
    assert_same,
    content,
    found_ids,
    make_index,
    passages,
    random_vectors,
    zipf_texts,
)

pytestmark = pytest.mark.usefixtures("either_way")

QUERY = random_vectors(1, seed=99)[0]


@given(
    seed=st.integers(0, 500),
    n=st.integers(1, 40),
    terms=st.lists(st.integers(0, 70), max_size=5),
    k=st.integers(1, 45),
    fetch_k=st.integers(1, 12),
    alpha=st.sampled_from([0.0, 0.3, 0.45, 1.0]),
    lang=st.sampled_from([None, "en"]),
)
def test_search_is_what_the_definition_says(
    seed: int,
    n: int,
    terms: list[int],
    k: int,
    fetch_k: int,
    alpha: float,
    lang: str | None,
) -> None:
    """Against the method written out over a plain list: ids and fused scores."""
    texts, vectors = zipf_texts(n, seed=seed), random_vectors(n, seed=seed)
    index = HybridIndex()
    index.add(passages(texts), vectors)
    text, query = " ".join(f"w{term}" for term in terms), random_vectors(1, seed=seed + 1)[0]
    ranking = index.search(
        text,
        query,
        k=k,
        fetch_k=fetch_k,
        alpha=alpha,
        where=None if lang is None else {"lang": lang},
    )
    ids, scores = BruteForce(passages(texts), list(vectors)).search(
        text,
        query,
        k=k,
        fetch_k=fetch_k,
        alpha=alpha,
        allowed=lambda passage: lang is None or passage.metadata["lang"] == lang,
    )
    assert found_ids(ranking) == ids
    np.testing.assert_allclose(ranking.scores, scores, atol=1e-5)


def test_every_score_is_exact_whichever_leg_found_the_passage() -> None:
    """Deep and shallow searches agree on each passage's own scores."""
    index = make_index(200)
    bm25 = BM25Index.from_texts(zipf_texts(200)).scores("w3 w8")
    everything = index.search("w3 w8", QUERY, k=200, alpha=1.0)
    dense = dict(zip(found_ids(everything), everything.dense, strict=True))
    shallow = index.search("w3 w8", QUERY, k=10, fetch_k=5, alpha=0.5)
    assert shallow.dense == [dense[id] for id in found_ids(shallow)]
    rows = [int(id[1:]) for id in found_ids(shallow)]
    np.testing.assert_allclose(shallow.sparse, bm25[rows], atol=1e-12)


def test_the_pool_is_the_union_of_both_legs_at_depth_fetch_k() -> None:
    """At fetch_k = 3: the three best of each leg and nobody else; deeper finds more."""
    index = make_index(100)
    dense = {*found_ids(index.search("", QUERY, k=3, fetch_k=3, alpha=1.0))}
    bm25 = BM25Index.from_texts(zipf_texts(100))
    sparse = {f"p{row}" for row in bm25.search("w3 w8", 3)[0]}
    pool = [
        id
        for a in (0.0, 0.5, 1.0)
        for id in found_ids(index.search("w3 w8", QUERY, k=3, fetch_k=3, alpha=a))
    ]
    assert {*pool} <= dense | sparse
    assert {*found_ids(index.search("w3 w8", QUERY, k=3, fetch_k=3, alpha=1.0))} == dense
    assert {*found_ids(index.search("w3 w8", QUERY, k=3, fetch_k=3, alpha=0.0))} == sparse


def test_k_is_always_fetched() -> None:
    """A fetch_k below k does not cut the answer short."""
    index = make_index(30)
    assert len(index.search("w1", QUERY, k=20, fetch_k=1)) == 20
    assert_same(
        index.search("w1", QUERY, k=20, fetch_k=1), index.search("w1", QUERY, k=20, fetch_k=20)
    )


@pytest.mark.parametrize("text", ["w1 w2", "", "unknown"])
@pytest.mark.parametrize("k", [1000, 2**63, 10**30])
def test_k_beyond_the_corpus_gives_all_of_it(text: str, k: int) -> None:
    """Each passage once, also where no machine counts that far."""
    ids = found_ids(make_index(30).search(text, QUERY, k=k, fetch_k=k))
    assert sorted(ids) == sorted(f"p{n}" for n in range(30))


def test_an_empty_index_answers_nothing() -> None:
    """Before the first passage, after the last was deleted, and after compaction."""
    index = HybridIndex()
    assert index.search("x", [1.0]).indices == []
    assert len(index.search_batch(["x", "y"], [[1.0], [2.0]])) == 2
    index.add([Passage("a", "x")], [[1.0, 0.0]])
    index.delete(["a"])
    assert len(index.search("x", [1.0, 0.0])) == 0
    index.compact()
    assert len(index.search("x", [1.0, 0.0])) == 0
    assert len(index) == 0


@pytest.mark.parametrize("text", ["", "  \n", "unknown words", "!?"])
def test_a_query_without_a_known_word_is_answered_by_the_dense_leg(text: str) -> None:
    """The sparse leg finds nothing and contributes 0; the order is the dense one."""
    index = make_index(100)
    ranking = index.search(text, QUERY, k=10)
    assert set(ranking.sparse_norm) == {0.0}
    assert found_ids(ranking) == found_ids(index.search(text, QUERY, k=10, alpha=1.0))
    assert ranking.dense == sorted(ranking.dense, reverse=True)


def test_a_zero_query_vector_is_answered_by_the_sparse_leg() -> None:
    """All dense scores are equal, so that leg contributes 0."""
    index = make_index(100)
    ranking = index.search("w4 w9", np.zeros(8), k=5, alpha=0.9)
    bm25 = BM25Index.from_texts(zipf_texts(100))
    assert found_ids(ranking) == [f"p{row}" for row in bm25.search("w4 w9", 5)[0]]


def test_passages_without_text_or_words_are_indexed() -> None:
    """A corpus in which nothing has a word is searched by vector alone."""
    index = HybridIndex()
    index.add([Passage("a", ""), Passage("b", "?!")], np.eye(2))
    assert found_ids(index.search("word", [0.0, 1.0])) == ["b", "a"]


@pytest.mark.parametrize("dense", ["flat", "ivf"])
@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("alpha", [0.3, "auto"])
@pytest.mark.parametrize("where", [None, {"lang": "en"}])
def test_a_batch_gives_bit_for_bit_what_single_searches_give(
    dense: str,
    fusion: str,
    alpha: object,
    where: object,
) -> None:
    """Every number of every ranking."""
    index = make_index(300, dense=dense)
    index.delete([f"p{n}" for n in range(0, 300, 11)])
    texts, vectors = zipf_texts(90, seed=5, longest=6), random_vectors(90, seed=6)
    options = {"k": 7, "fetch_k": 15, "fusion": fusion, "alpha": alpha, "where": where}
    together = index.search_batch(texts, vectors, **options)  # type: ignore[arg-type]
    for ranking, text, vector in zip(together, texts, vectors, strict=True):
        assert ranking == index.search(text, vector, **options)  # type: ignore[arg-type]


def test_texts_may_come_as_an_array() -> None:
    """The truth of which NumPy does not tell."""
    index, texts = make_index(30), ["w1 w5", " w3 "]
    together = index.search_batch(np.array(texts), [QUERY, QUERY])  # type: ignore[arg-type]
    assert together == [index.search(text, QUERY) for text in texts]
    assert [type(ranking.query) for ranking in together] == [str, str]


def test_an_empty_batch_gives_an_empty_list() -> None:
    """Whatever the size of the index."""
    assert make_index(5).search_batch([], np.zeros((0, 8))) == []
    assert make_index(5).search_batch(np.array([], str), np.zeros((0, 8))) == []  # type: ignore[arg-type]
    assert HybridIndex().search_batch([], []) == []


def test_results_are_plain_python_numbers() -> None:
    """A numpy float breaks JSON in both frameworks."""
    ranking = make_index(20).search("w1 w2", QUERY)
    for values in (ranking.scores, ranking.dense, ranking.sparse, ranking.sparse_norm):
        assert {type(value) for value in values} == {float}
    for ranks in (ranking.indices, ranking.dense_rank, ranking.sparse_rank):
        assert {type(rank) for rank in ranks} == {int}
    assert type(ranking.alpha) is float


@given(seed=st.integers(0, 200), alpha=st.floats(0, 1) | st.just("auto"))
def test_fused_scores_are_sorted_and_lie_in_the_unit_interval(seed: int, alpha: object) -> None:
    """Whatever the query, by both fusions."""
    index = make_index(50, seed=seed % 5)
    text = zipf_texts(1, seed=seed)[0]
    for fusion in ("min_max", "rrf"):
        scores = index.search(
            text,
            random_vectors(1, seed=seed)[0],
            alpha=alpha,
            fusion=fusion,  # type: ignore[arg-type]
        ).scores
        assert scores == sorted(scores, reverse=True)
        assert 0 <= scores[-1] <= scores[0] <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"k": -3}, "k must be an integer >= 1, got -3"),
        ({"k": 2.0}, "k must be an integer >= 1, got 2.0"),
        ({"k": True}, "k must be an integer >= 1, got True"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"alpha": -0.1}, r"alpha must .* got -0\.1"),
        ({"alpha": 1.1}, r"alpha must .* got 1\.1"),
        ({"alpha": float("nan")}, r"alpha must .* got nan"),
        ({"alpha": "best"}, "alpha must .* got 'best'"),
        ({"fusion": "sum"}, "fusion must .* got 'sum'"),
        ({"where": "en"}, "filter .* got 'en'"),
    ],
)
@pytest.mark.parametrize("n", [0, 5])
def test_bad_search_options_are_refused(options: dict[str, object], message: str, n: int) -> None:
    """The message names the value; an empty index is as strict as a full one."""
    index = make_index(n) if n else HybridIndex()
    with pytest.raises(ValueError, match=message):
        index.search("w1", QUERY, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("vector", [[1.0, 2], [float("nan")] * 8, [float("inf")] * 8, 1.0])
def test_a_bad_query_vector_is_refused(vector: object) -> None:
    """Wrong dimension, NaN, infinite, scalar: one at a time and in a batch."""
    index = make_index(5)
    with pytest.raises(ValueError):
        index.search("w1", vector)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        index.search_batch(["w1", "w2"], [QUERY, vector])  # type: ignore[list-item]


def test_texts_and_vectors_must_be_as_many() -> None:
    """The message names both numbers."""
    with pytest.raises(ValueError, match="got 2 texts and 1 vectors"):
        make_index(5).search_batch(["a", "b"], [QUERY])


def test_one_text_is_no_batch() -> None:
    """Its letters would be queries."""
    with pytest.raises(ValueError, match="texts must be a list, got the string 'abc'"):
        make_index(5).search_batch("abc", [QUERY] * 3)


@pytest.mark.parametrize("text", [None, 7])
def test_a_query_that_is_no_text_is_named(text: Any) -> None:
    """One at a time and in a batch."""
    index = make_index(5)
    with pytest.raises(ValueError, match=f"a text must be a string, got {text}"):
        index.search(text, QUERY)
    with pytest.raises(ValueError, match=f"a text must be a string, got {text}"):
        index.search_batch(["w1", text], [QUERY, QUERY])


@pytest.mark.parametrize(
    ("option", "value"),
    [("metric", "l2"), ("dense", "pq"), ("variant", "plus"), ("k1", -1), ("b", 2), ("epsilon", -1)],
)
def test_bad_index_options_are_refused(option: str, value: object) -> None:
    """The message names option and value."""
    with pytest.raises(ValueError, match=rf"{option} must .*{value}"):
        HybridIndex(**{option: value})  # type: ignore[arg-type]


def test_what_an_index_shows_of_itself() -> None:
    """Length, dimension, ids in insertion order, membership and look-up."""
    index = make_index(3)
    assert (len(index), index.dim, index.ids) == (3, 8, ["p0", "p1", "p2"])
    assert "p1" in index
    assert "nope" not in index
    assert 5 not in index
    assert [passage.id for passage in index.get(["p2", "nope", "p0"])] == ["p2", "p0"]
    assert repr(index) == "HybridIndex(3 passages, dim=8, dense='flat', variant='lucene')"
    assert HybridIndex().dim is None


def test_the_source_object_comes_back_untouched() -> None:
    """Passages are carried along, never copied or changed."""
    source = object()
    passage = Passage("a", "x", {"deep": [1]}, source)
    index = HybridIndex()
    index.add([passage], [[1.0]])
    assert index.search("x", [1.0]).passages[0] is passage


def test_content_covers_every_field_of_a_ranking() -> None:
    """The comparisons of these tests would miss a field they do not know."""
    ranking = make_index(3).search("w1", QUERY)
    assert len(content(ranking)) == len(ranking.__dataclass_fields__) - 1
