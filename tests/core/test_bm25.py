"""BM25: both variants against other libraries, and after every kind of change."""

from __future__ import annotations

import math
import pickle
import re
from collections.abc import Callable
from copy import copy, deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi, BM25Plus

from shared_core import BM25Index, HybridIndex, tokenize
from shared_core.index.sparse import lexicon
from shared_core.index.sparse.bm25 import BM25Options

from .making import brute_bm25, zipf_texts

pytestmark = pytest.mark.usefixtures("either_way")

QUERIES = ["w0", "w3 w1", "w1 w1 w1 w7", "w0 w2 w59 w40", "unknown", "unknown w5", ""]

words = st.sampled_from("abcdefg")
documents = st.lists(st.lists(words, max_size=8), min_size=1, max_size=10)


def okapi_scores(texts: list[str], query: str, **options: float) -> np.ndarray:
    return np.asarray(
        BM25Okapi([text.split() for text in texts], **options).get_scores(query.split())
    )


def okapi(texts: list[str], **options: float) -> BM25Index:
    return BM25Index.from_texts(texts, variant="okapi", tokenizer=str.split, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", QUERIES)
def test_okapi_is_rank_bm25(query: str) -> None:
    """Zipf words: w0 is in most texts, so its idf is negative and floored by epsilon."""
    texts = zipf_texts(200)
    df = sum("w0" in text.split() for text in texts)
    assert df > len(texts) / 2
    np.testing.assert_allclose(okapi(texts).scores(query), okapi_scores(texts, query), atol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"k1": 0.5}, {"k1": 3.0, "b": 0.0}, {"b": 1.0}, {"epsilon": 0.0}, {"epsilon": 2.0}],
)
def test_okapi_options_are_those_of_rank_bm25(options: dict[str, float]) -> None:
    """Each option does what it does there."""
    texts = zipf_texts(80, seed=2)
    for query in QUERIES:
        np.testing.assert_allclose(
            okapi(texts, **options).scores(query), okapi_scores(texts, query, **options), atol=1e-9
        )


@given(documents.filter(any), st.lists(words, max_size=6))
def test_okapi_is_rank_bm25_on_tiny_corpora(corpus: list[list[str]], query: list[str]) -> None:
    """One text, equal texts, negative mean idf, repeated query terms: to 1e-9."""
    texts = [" ".join(document) for document in corpus]
    np.testing.assert_allclose(
        okapi(texts).scores(" ".join(query)), BM25Okapi(corpus).get_scores(query), atol=1e-9
    )


@given(documents, documents, st.sets(st.integers(0, 19)), st.lists(words, max_size=5))
def test_after_adding_and_deleting_okapi_is_rank_bm25_of_the_rest(
    first: list[list[str]], second: list[list[str]], deleted: set[int], query: list[str]
) -> None:
    """No statistic remembers what was deleted."""
    index = okapi([" ".join(document) for document in first])
    index.add(" ".join(document) for document in second)
    corpus = first + second
    deleted = {row for row in deleted if row < len(corpus)}
    index.delete(deleted)
    remaining = [row for row in range(len(corpus)) if row not in deleted]
    rest = [corpus[row] for row in remaining]
    if not any(rest):  # rank_bm25 divides by zero
        assert not index.search(" ".join(query), 5)[0].size
        return
    expected = BM25Okapi(rest).get_scores(query)
    np.testing.assert_allclose(index.scores_at(" ".join(query), remaining), expected, atol=1e-9)
    index.compact()
    np.testing.assert_allclose(index.scores(" ".join(query)), expected, atol=1e-9)


def test_an_existing_bm25okapi_converts() -> None:
    """Its parameters come along, and so do scores of texts that are added afterwards."""
    texts = zipf_texts(120, seed=3)
    corpus = [text.split() for text in texts]
    options = {"k1": 1.2, "b": 0.6, "epsilon": 0.1}
    index = BM25Index.from_rank_bm25(BM25Okapi(corpus[:100], **options), tokenizer=str.split)
    for query in QUERIES:
        expected = BM25Okapi(corpus[:100], **options).get_scores(query.split())
        np.testing.assert_allclose(index.scores(query), expected, atol=1e-9)
    index.add(texts[100:])
    for query in QUERIES:
        expected = BM25Okapi(corpus, **options).get_scores(query.split())
        np.testing.assert_allclose(index.scores(query), expected, atol=1e-9)


def test_only_bm25okapi_converts() -> None:
    """BM25Plus has another formula; pretending would change the scores."""
    with pytest.raises(ValueError, match="BM25Plus"):
        BM25Index.from_rank_bm25(BM25Plus([["a"]]), tokenizer=str.split)


@pytest.mark.parametrize("query", ["w0", "w3 w1", "w0 w2 w40"])
def test_lucene_is_bm25s(query: str) -> None:
    """The formula of bm25s's method "lucene"; it computes in float32."""
    texts = zipf_texts(150, seed=4)
    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    peer.index([text.split() for text in texts], show_progress=False)
    ours = BM25Index.from_texts(texts, k1=0.9, b=0.4, tokenizer=str.split)
    np.testing.assert_allclose(
        ours.scores(query), peer.get_scores(query.split()), rtol=1e-5, atol=1e-6
    )


@given(documents, st.lists(words, max_size=6))
def test_lucene_is_its_definition(corpus: list[list[str]], query: list[str]) -> None:
    """Term by term from the formula; a term said twice in the query counts twice."""
    index = BM25Index.from_texts(map(" ".join, corpus), tokenizer=str.split)
    np.testing.assert_allclose(index.scores(" ".join(query)), brute_bm25(query, corpus), atol=1e-12)


def test_each_variant_has_its_usual_defaults() -> None:
    """Lucene's k1 is 1.2, rank-bm25's 1.5; b is 0.75 in both. A k1 of one's own is kept."""
    assert (BM25Index().options.variant, BM25Index().options.k1) == ("lucene", 1.2)
    okapi_options = BM25Index(variant="okapi").options
    rank_bm25 = BM25Okapi([["a"]])
    assert (okapi_options.k1, okapi_options.b) == (rank_bm25.k1, rank_bm25.b) == (1.5, 0.75)
    assert okapi_options.epsilon == rank_bm25.epsilon
    assert BM25Index(k1=0.0).options.k1 == 0


def test_a_copy_by_pickle_gives_the_same_and_lives_on() -> None:
    """It travels to worker processes; its lock is made anew."""
    index = BM25Index.from_texts(zipf_texts(30))
    copy = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(copy.scores("w1 w3"), index.scores("w1 w3"))
    copy.add(["w1"])
    assert (len(copy), len(index)) == (31, 30)


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_learns_words_of_its_own(copied: Callable[[BM25Index], BM25Index]) -> None:
    """Numbered by both, a word of one would be another word of the other."""
    index = BM25Index.from_texts(["a b"], variant="okapi", k1=1.1)
    other = copied(index)
    index.add(["mine"])
    other.add(["yours"])
    assert other.options == index.options
    assert [*index.lexicon.ids] == ["a", "b", "mine"]
    assert [*other.lexicon.ids] == ["a", "b", "yours"]


def test_lucene_has_no_zero_or_negative_idf() -> None:
    """A word of every text still tells how much a text is about it."""
    scores = BM25Index.from_texts(["a a a b", "a b b b", "a"]).scores("a")
    assert (scores > 0).all()


def test_deleted_rows_score_zero() -> None:
    """`scores` covers every row, so a deleted one must not look like a hit."""
    index = BM25Index.from_texts(["a b", "a c", "d"])
    index.delete([0])
    assert index.scores("a b")[0] == 0
    assert index.scores("a b")[1] > 0


def test_search_finds_only_rows_that_share_a_token() -> None:
    """BM25Retriever fills its answer with texts that score 0; ours does not."""
    index = BM25Index.from_texts(["a", "b", "a b", "c", ""])
    assert sorted(index.search("a", 10)[0].tolist()) == [0, 2]
    assert index.search("unknown", 10)[0].size == 0
    assert index.search("", 10)[0].size == 0
    assert BM25Index().search("a", 10)[0].size == 0


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_equal_texts_come_in_row_order(variant: str) -> None:
    """Ties are stable."""
    index = BM25Index.from_texts(["x y", "y", "y x", "x y"], variant=variant)  # type: ignore[arg-type]
    assert index.search("x", 10)[0].tolist() == [0, 2, 3]
    assert index.search("x", 2)[0].tolist() == [0, 2]


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_search_refuses_a_k_below_one(k: int) -> None:
    """The message names the value."""
    with pytest.raises(ValueError, match=f"k must be an integer >= 1, got {k}"):
        BM25Index.from_texts(["a", "b a"]).search("a", k)


def test_allowed_rows_hold() -> None:
    """The best k among the allowed ones, not the allowed ones among the best k."""
    texts = zipf_texts(100, seed=5)
    index = BM25Index.from_texts(texts)
    allowed = np.arange(100) % 7 == 0
    rows, scores = index.search("w3 w5", 5, allowed=allowed)
    everything = index.scores("w3 w5")
    best = sorted((row for row in range(0, 100, 7)), key=lambda row: (-everything[row], row))[:5]
    assert rows.tolist() == best
    np.testing.assert_array_equal(scores, everything[best])


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_texts_from_outside_are_scored_like_rows(variant: str) -> None:
    """The very texts of the index get their row's score, by the index's statistics."""
    texts = zipf_texts(60, seed=6)
    index = BM25Index.from_texts(texts, variant=variant)  # type: ignore[arg-type]
    index.delete(range(0, 60, 4))
    remaining = [row for row in range(60) if row % 4]
    for query in QUERIES:
        outside = index.score_texts(query, [texts[row] for row in remaining])
        np.testing.assert_allclose(outside, index.scores_at(query, remaining), atol=1e-12)


def test_words_the_index_does_not_know_lengthen_a_text_from_outside() -> None:
    """They take part in its length, as they would if it were added."""
    index = BM25Index.from_texts(["a b", "b c"])
    short, long = index.score_texts("a", ["a", "a z z z z"])
    assert short > long > 0


@pytest.mark.parametrize("rows", [[7, None, 3, None, 7], [2, 1], [None, None], []], ids=str)
def test_rows_and_texts_from_outside_are_scored_together(rows: list[int | None]) -> None:
    """Each as by itself, and no text is asked for that stands in a row."""
    texts = zipf_texts(40, seed=8)
    index = BM25Index.from_texts(texts)
    asked: list[int] = []

    def text_at(at: int) -> str:
        asked.append(at)
        return f"w1 w3 w3 unknown{at} {texts[at]}"

    for query in QUERIES:
        asked.clear()
        scores = index.scores_of(query, rows, text_at)
        assert asked == [at for at, row in enumerate(rows) if row is None]
        expected = [
            index.score_texts(query, [text_at(at)])[0]
            if row is None
            else index.scores_at(query, [row])[0]
            for at, row in enumerate(rows)
        ]
        assert scores.tolist() == expected
    with pytest.raises(IndexError, match="there is no row 40: there are 40"):
        index.scores_of("w1", [None, 40], text_at)


def test_rows_and_texts_are_scored_by_one_snapshot() -> None:
    """Also where another thread adds while the texts are read."""
    texts = zipf_texts(40, seed=8)
    index, apart = BM25Index.from_texts(texts), BM25Index.from_texts(texts)

    def text_at(at: int) -> str:
        index.add(["w1 w2 w3"] * 50)
        return texts[at]

    scores = index.scores_of("w1 w3", [5, None], text_at)
    assert scores.tolist() == apart.scores_of("w1 w3", [5, None], texts.__getitem__).tolist()


@pytest.mark.parametrize("default", [False, True])
def test_a_text_from_outside_is_split_once(default: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And of the default's pieces, one whose words are known is not split again."""
    asked: list[str] = []

    def counting(text: str) -> list[str]:
        asked.append(text)
        return tokenize(text)

    if default:
        monkeypatch.setattr(lexicon, "tokenize", counting)
    index = BM25Index.from_texts(["a b"], tokenizer=None if default else counting)
    asked.clear()
    index.score_texts("a", ["a Z-z b", "a"])
    assert asked == (["Z-z"] if default else ["a", "a Z-z b", "a"])


@pytest.mark.parametrize(
    "call",
    [
        BM25Index.from_texts,
        BM25Index().add,
        lambda text: BM25Index.from_texts(["a"]).score_texts("a", text),
    ],
)
def test_one_text_is_no_list_of_texts(call: Callable[[str], object]) -> None:
    """Its letters would be texts."""
    with pytest.raises(ValueError, match=r"texts must be a list, got the string 'be'; give"):
        call("be")


def test_a_message_does_not_repeat_a_long_text_whole() -> None:
    """A whole file, say."""
    with pytest.raises(ValueError, match=r"got the string 'x{76}\.\.\.; give") as caught:
        BM25Index.from_texts("x" * 10_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("query", [None, 7, ["a"]])
def test_a_text_that_is_none_is_named(query: Any) -> None:
    """Not by what the interpreter says of a descriptor."""
    index = BM25Index.from_texts(["a"])
    told = rf"a text must be a string, got {re.escape(repr(query))}"
    for call in (index.query, index.scores):
        with pytest.raises(ValueError, match=told):
            call(query)
    with pytest.raises(ValueError, match=told):
        index.add(["b", query])
    assert len(index) == 1


def test_scoring_no_texts_gives_no_scores() -> None:
    """An empty candidate list is not an error; nor is an empty index, or an empty text."""
    assert BM25Index.from_texts(["a"]).score_texts("a", []).shape == (0,)
    assert BM25Index.from_texts(["a"]).score_texts("b", []).shape == (0,)
    assert BM25Index().score_texts("a", ["a", ""]).tolist() == [0, 0]


def test_a_tokenizer_may_return_any_iterable() -> None:
    """Or the scores of texts from outside would fail where those of the index do not."""
    index = BM25Index.from_texts(["a b"], tokenizer=lambda text: iter(text.split()))  # type: ignore[arg-type, return-value]
    assert index.score_texts("a", ["a b"]) == index.scores_at("a", [0])


def test_what_cannot_tokenise_is_refused_at_once() -> None:
    """Not when the first text comes."""
    with pytest.raises(ValueError, match="tokenizer must be a function of a text, got 3"):
        BM25Index(tokenizer=3)  # type: ignore[arg-type]


def test_a_tokenizer_that_raises_midway_adds_nothing() -> None:
    """All of the texts or none; the index goes on as before."""

    def fragile(text: str) -> list[str]:
        if text == "boom":
            raise RuntimeError("tokenizer broke")
        return text.split()

    index = BM25Index.from_texts(["a", "a b"], tokenizer=fragile)
    before = index.scores("a b")
    with pytest.raises(RuntimeError, match="tokenizer broke"):
        index.add(["new b", "boom", "b"])
    assert len(index) == 2
    np.testing.assert_array_equal(index.scores("a b"), before)
    assert list(index.add(["new b"])) == [2]
    np.testing.assert_allclose(
        index.scores("new b"), brute_bm25(["new", "b"], [["a"], ["a", "b"], ["new", "b"]])
    )


def test_a_prepared_query_sees_the_snapshot_it_was_made_on() -> None:
    """What is added or deleted afterwards neither changes it nor breaks it."""
    index = BM25Index.from_texts(zipf_texts(50, seed=7))
    prepared, rows = index.query("w1 w2"), np.arange(50)
    before, best = prepared.at(rows), prepared.best(10)
    view = index.view
    index.add(zipf_texts(50, seed=8))
    index.delete(range(25))
    np.testing.assert_array_equal(prepared.at(rows), before)
    np.testing.assert_array_equal(np.stack(prepared.best(10)), np.stack(best))
    assert view.size == 50


@pytest.mark.parametrize("rows", [[3], [-1], [0, 99]])
def test_deleting_a_row_that_is_not_there_is_refused(rows: list[int]) -> None:
    """Nothing is deleted, not even the row that was there."""
    index = BM25Index.from_texts(["a", "b", "c"])
    with pytest.raises(ValueError, match=r"rows must lie in \[0, 3\)"):
        index.delete(rows)
    assert len(index) == 3


def test_segments_stay_few_while_texts_come_one_by_one() -> None:
    """A search visits every segment, so their number must grow slowly: by doubling."""
    index = BM25Index()
    for text in zipf_texts(300, seed=9):
        index.add([text])
    assert len(index.view.segments) <= math.log2(300) + 2
    together = BM25Index.from_texts(zipf_texts(300, seed=9))
    for query in QUERIES:
        np.testing.assert_allclose(index.scores(query), together.scores(query), atol=1e-12)


def test_what_is_returned_may_be_changed() -> None:
    """It is the caller's own."""
    index = BM25Index.from_texts(["a b", "b c", "c c a", "d"])
    rows, best = index.search("c", 2)
    for found in (rows, best, index.scores("c"), index.scores_at("c", [1, 2])):
        found += 1
        found.sort()
    assert index.search("c", 2)[0].tolist() == [2, 1]


def test_rows_may_come_in_any_order_and_shape() -> None:
    """The scores come in the same."""
    index = BM25Index.from_texts(["a b", "b c", "c c a", "d"])
    scores = index.scores("c d")
    assert index.scores_at("c d", np.arange(4)[::-1]).tolist() == scores[::-1].tolist()
    assert index.scores_at("c d", [[3, 2], [1, 0]]).tolist() == [
        [*scores[[3, 2]]],
        [*scores[[1, 0]]],
    ]
    assert index.scores_at("c d", 3) == scores[3]
    assert index.scores_at("c d", []).tolist() == []


@pytest.mark.parametrize("row", [4, -1, 10**9])
def test_a_row_that_is_not_there_has_no_score(row: int) -> None:
    """Not 0, and not that of another one counted from the end."""
    index = BM25Index.from_texts(["a b", "b c", "c c a", "d"])
    with pytest.raises(IndexError, match=f"no row {row}: there are 4"):
        index.scores_at("c", [1, row])


@pytest.mark.parametrize("allowed", [[True, False, True, True], np.eye(4, dtype=bool)[::-1, 3]])
def test_a_mask_may_be_a_list_or_a_column(allowed: Any) -> None:
    """Whatever numpy takes for one."""
    index = BM25Index.from_texts(["c", "c c", "a c", "c d"])
    rows, _ = index.search("c", 4, allowed=allowed)
    assert {*rows.tolist()} == {*np.flatnonzero(allowed).tolist()}


@pytest.mark.parametrize("count", [2**16 - 1, 2**16, 70_000])
def test_counts_beyond_16_bits_are_kept(count: int) -> None:
    """A word may occur so often in one text."""
    index = BM25Index.from_texts(["a " * count, "a b"], tokenizer=str.split)
    expected = brute_bm25(["a"], [["a"] * count, ["a", "b"]])
    np.testing.assert_allclose(index.scores("a"), expected)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("variant", "plus"),
        ("k1", -0.1),
        ("k1", math.inf),
        ("k1", math.nan),
        ("b", -0.1),
        ("b", 1.1),
        ("epsilon", -1),
        ("epsilon", math.nan),
        ("k1", 10**400),
        ("k1", "1.2"),
        ("k1", True),
        ("b", None),
        ("b", False),
        ("b", [0.5]),
        ("epsilon", 1j),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    """The message names option and value."""
    with pytest.raises(ValueError, match=f"{option} must .*{re.escape(str(value))}"):
        BM25Options(**{option: value})  # type: ignore[arg-type]


def test_options_are_kept_as_floats(tmp_path: Path) -> None:
    """Of whatever type they come, as from a search over NumPy values, an index can be saved."""
    options = BM25Options(k1=np.float32(1.5), b=np.int64(1), epsilon=Fraction(1, 4))  # type: ignore[arg-type]
    assert [type(value) for value in (options.k1, options.b, options.epsilon)] == [float] * 3
    assert options == BM25Options(k1=1.5, b=1.0, epsilon=0.25)
    HybridIndex(k1=np.float32(1.5)).save(tmp_path)
    assert HybridIndex.load(tmp_path)._state.sparse.options == BM25Options(k1=1.5)


def test_k1_is_the_variants_usual_one_unless_it_is_given() -> None:
    """Of the options as of the index."""
    assert BM25Options().k1 == BM25Index().options.k1 == 1.2
    okapi = BM25Options(variant="okapi")
    assert okapi == BM25Index(variant="okapi").options
    assert (okapi.k1, okapi.gain) == (1.5, 2.5)
    assert BM25Options(variant="okapi", k1=1.2).k1 == 1.2


def test_an_absent_term_weighs_nothing_where_k1_is_zero() -> None:
    """k1 = 0 makes a term count once however often it occurs; absent must not be 0 / 0."""
    scores = BM25Index.from_texts(["a a a", "a b", "b"], k1=0.0).scores("a")
    assert scores[0] == scores[1] > 0
    assert scores[2] == 0
