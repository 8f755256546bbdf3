"""BM25: both variants against other libraries, and the search against scoring every row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from shared_core import Passage, PassageIndex
from shared_core.arrays import Scores
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.native import kernels
from tests.core.making import passages, zipf_texts

words = st.sampled_from("abcdefg")
documents = st.lists(st.lists(words, max_size=8), min_size=1, max_size=10)


options = st.fixed_dictionaries(
    {},
    optional={
        "k1": st.sampled_from([0.5, 3.0]),
        "b": st.sampled_from([0.0, 0.9]),
        "epsilon": st.sampled_from([0.0, 2.0]),
    },
)


def index_of(texts: list[str], **options: Any) -> PassageIndex:
    index = PassageIndex(**options)
    index.add(passages(texts))
    return index


def scores(index: PassageIndex, query: str) -> Scores:
    return index.scores(query, index.passages)


@pytest.mark.usefixtures("either_way")
@given(documents.filter(any), st.lists(words, max_size=6), options)
def test_okapi_is_rank_bm25(
    corpus: list[list[str]], query: list[str], options: dict[str, float]
) -> None:
    """One text, equal texts, negative mean idf, repeated query terms: to 1e-9."""
    texts = [" ".join(document) for document in corpus]
    index = index_of(texts, variant="okapi", tokenizer=str.split, **options)
    expected = BM25Okapi(corpus, **options).get_scores(query)
    np.testing.assert_allclose(scores(index, " ".join(query)), expected, atol=1e-9)


@pytest.mark.parametrize("options", [{"k1": 0.9, "b": 0.4}, {}], ids=str)
def test_lucene_is_bm25s(options: dict[str, float]) -> None:
    """The formula of bm25s's method "lucene", which computes in float32; k1 is 1.2 by default."""
    texts = zipf_texts(150, seed=4)
    peer = bm25s.BM25(method="lucene", **({"k1": 1.2, "b": 0.75} | options))
    peer.index([text.split() for text in texts], show_progress=False)
    ours = index_of(texts, tokenizer=str.split, **options)
    for query in ("w0", "w3 w1", "w0 w2 w40"):
        np.testing.assert_allclose(
            scores(ours, query), peer.get_scores(query.split()), rtol=1e-5, atol=1e-6
        )


def test_a_list_of_texts_is_searched_and_scored() -> None:
    """Only those that share a token are found, ties by position; other texts are scored alike."""
    texts = ["a", "b", "a b", "c", "", "a b b"]
    index = PassageIndex.from_texts(texts)
    found = index.best("a", 10)
    assert [passage for passage, _ in found] == index.get(["0", "2", "5"])
    assert [score for _, score in found] == sorted(scores(index, "a"), reverse=True)[:3]
    for query in ("unknown", ""):
        assert not index.best(query, 10)
        assert not scores(index, query).any()
    longer, shorter = index.scores("a", [Passage("", "a z z z"), Passage("", "a")])
    assert longer < shorter
    assert not PassageIndex.from_texts([]).best("a", 3)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_texts_without_a_word_score_0(variant: Any) -> None:
    """All of them, as a converter makes of blank pages: their mean length is 0."""
    index = index_of(["", " ."], variant=variant)
    assert index.best("a", 2) == []
    assert scores(index, "a").tolist() == [0, 0]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("variant", "plus"),
        ("b", 1.1),
        ("k1", math.inf),
        ("epsilon", math.nan),
        ("mean_length", 0),
        ("b", None),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{option} must .*, got "):
        PassageIndex(**{option: value})


def test_what_is_no_list_of_texts_is_refused() -> None:
    """A text's letters would be texts."""
    with pytest.raises(ValueError, match="texts must be a list, got the string 'be'"):
        PassageIndex.from_texts("be")
    with pytest.raises(ValueError, match="text of passage '1' must be a string, got None"):
        PassageIndex.from_texts(["b", None])  # type: ignore[list-item]


@pytest.mark.parametrize("count", [1, 5, 6, 50])
def test_deleting_few_or_many_leaves_the_scores_of_what_is_left(count: int) -> None:
    """To the last bit, with several segments, some passages deleted before, some twice."""
    given = passages(zipf_texts(120))
    index = PassageIndex()
    for part in (given[:100], given[100:]):
        index.add(part)
    for gone in (given[::9], given[:count], given[-count:]):
        index.delete(passage.id for passage in gone)
    left = PassageIndex()
    left.add(index.passages)
    assert len(left) == len({*range(count, 120 - count)} - {*range(0, 120, 9)})
    for word in range(60):
        assert index.best(f"w{word}", 120) == left.best(f"w{word}", 120)


def test_the_mean_idf_does_not_depend_on_the_order_of_the_terms() -> None:
    """To the last bit. The order differs after deletions."""
    rng, options = np.random.default_rng(0), BM25Options(variant="okapi")
    df = rng.integers(0, 1000, 200)
    assert len({options.mean_idf(rng.permutation(df), 1000) for _ in range(20)}) == 1


@pytest.mark.parametrize("built", [True, False])
def test_lengths_are_compared_with_a_mean_that_is_given(built: bool) -> None:
    """Whatever is added and deleted; texts from outside, too."""
    texts = ["x y", "x" + " z" * 9, "y"]
    with patch.object(kernels, "built", built and kernels.built):
        index = PassageIndex(mean_length=4)
        index.add([Passage(str(n), text) for n, text in enumerate(texts)])
        index.delete(["2"])
        idf = np.log1p(0.5 / 2.5)
        expected = [idf / (1 + 1.2 * (0.25 + 0.75 * length / 4)) for length in (2, 10)]
        found = index.scores("x", [*index.passages, Passage("other", "x a")])
        assert found == pytest.approx([*expected, expected[0]])


@pytest.mark.filterwarnings("error")
def test_an_option_may_be_a_number_of_numpy() -> None:
    one, other = (index_of(["a b"], k1=k1) for k1 in (np.float32(2), 2.0))
    assert one.best("a", 1) == other.best("a", 1)


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([1, 2, 30, 400, 3000, 9000]),
    terms=st.lists(st.integers(0, 59), min_size=1, max_size=8),
    k=st.integers(1, 30),
    keep=st.sampled_from([1.0, 0.5, 0.05]),
    deleted=st.sampled_from([0.0, 0.3, 0.95]),
    skew=st.sampled_from([0.4, 1.2]),
    parts=st.integers(1, 4),
)
@settings(max_examples=60)
def test_the_best_are_those_of_scoring_every_row(
    variant: Any,
    seed: int,
    n: int,
    terms: list[int],
    k: int,
    keep: float,
    deleted: float,
    skew: float,
    parts: int,
) -> None:
    """To the last bit, by C and by numpy; with many windows and segments, filters, deletions."""
    rng = np.random.default_rng(seed)
    index, given = PassageIndex(variant=variant), passages(zipf_texts(n, seed=seed, skew=skew))
    for part in range(parts):
        index.add(given[n * part // parts : n * (part + 1) // parts])
    index.delete(given[row].id for row in (rng.random(n) < deleted).nonzero()[0])
    allowed = rng.random(n) < keep
    query = " ".join(f"w{term}" for term in terms)
    check_best(index, query, k, lambda metadata: bool(allowed[metadata["n"]]))


def check_best(
    index: PassageIndex, query: str, k: int, where: Callable[[Any], bool] | None = None
) -> list[str]:
    """Check what is found against the scores of all passages; return the ids."""
    found, everywhere = [], []
    for built in {kernels.built, False}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernels, "built", built)
            found.append(index.best(query, k, where=where))
            everywhere.append(index.scores(query, index.passages).tolist())
    assert everywhere[0] == everywhere[-1]
    sought = {*query.split()}
    matching = [
        (passage, score)
        for passage, score in zip(index.passages, everywhere[0], strict=True)
        if sought & {*passage.text.split()} and (where is None or where(passage.metadata))
    ]
    best = sorted(matching, key=lambda each: -each[1])[:k]
    assert found == [best] * len(found)
    return [passage.id for passage, _ in best]


@pytest.mark.parametrize(("at", "parts"), [(0, 1), (120, 3)])
def test_counts_of_any_width_score_alike(at: int, parts: int) -> None:
    """A word that occurs 70,000 times in one text makes its segment's counts wider."""
    texts = zipf_texts(200, seed=at)
    texts[at] += " w3" * 70_000
    index, given = PassageIndex(tokenizer=str.split), passages(texts)
    for part in range(parts):
        index.add(given[200 * part // parts : 200 * (part + 1) // parts])
    check_best(index, "w3 w0 w17", 3)
    assert f"p{at}" in check_best(index, "w3 w0 w17", 200)


@pytest.mark.parametrize(
    ("rare", "frequent", "segment", "k"),
    [(1200, 4000, 0, 1), (876, 4000, 1, 5), (596, 1400, 1, 1)],
)
def test_the_bound_of_the_frequent_term_is_used_to_the_full(
    rare: int, frequent: int, segment: int, k: int
) -> None:
    """A row that is behind by most of the bound overtakes by holding the frequent term often.

    With b = 0 a term that occurs 1,000 times weighs 0.999 of what it can weigh at most. The rows
    before fill the best k, and no row with the frequent term alone can come there; whether its
    postings are gone through (where it is up to 3 times as frequent) or looked up, and in either
    segment.
    """
    before = ["rare " * 8] * 200 + ["none nil null nought void"] * 4500
    overtaking = ["rare " + "frequent " * 1000] * k
    behind = ["rare"] * (rare - 200 - k) + ["frequent"] * (frequent - k - 10)
    elsewhere = ["frequent"] * 10
    parts = [before + overtaking + behind, elsewhere]
    if segment == 1:
        parts = [before + elsewhere, overtaking + behind]
    parts[1] += ["none"] * (12_000 - len(parts[0] + parts[1]))
    index = PassageIndex(k1=1.2, b=0.0)
    for part, prefix in zip(parts, "pq", strict=True):
        index.add(passages(part, prefix=prefix))
    overtakers = [f"p{4700 + at}" if segment == 0 else f"q{at}" for at in range(k)]
    assert check_best(index, "rare frequent", k) == overtakers


@pytest.mark.parametrize(("copies", "terms"), [(2, 7), (5, 1), (11, 4)])
def test_equal_texts_have_equal_scores_and_come_in_row_order(copies: int, terms: int) -> None:
    """A row's score must not depend on where it stands."""
    rng = np.random.default_rng(copies)
    stops = [f"s{n}" for n in range(terms)]
    text = " ".join(["rare", *(word for word in stops for _ in range(rng.integers(1, 4)))])
    rest = [" ".join(word for word in stops if rng.random() < 0.5) for _ in range(300)]
    half = copies // 2
    index = index_of([text] * half + rest + [text] * (copies - half))
    ids = check_best(index, "rare " * 9 + " ".join(stops), copies)
    assert ids == [f"p{row}" for row in [*range(half), *range(half + 300, copies + 300)]]


def test_words_of_no_weight_and_of_negative_weight_hide_nothing() -> None:
    """Okapi weighs a word of half the texts 0, and in tiny corpora some below 0."""
    texts = ["half"] * 100 + ["rare half"] * 2 + ["other"] * 100 + ["rare"] * 2
    assert len(check_best(index_of(texts, variant="okapi"), "rare half", 200)) == 104
    negative = index_of(["a b", "a"], variant="okapi")
    assert negative.best("a", 1)[0][1] < 0
    assert len(check_best(negative, "a b", 2)) == 2
    assert len(check_best(index_of(["a"] * 300 + ["a a"] * 5), "a", 5)) == 5


@pytest.mark.parametrize("text", ["ต้นไม้", "深層 学習 model"])
def test_a_script_without_spaces_needs_a_tokenizer_and_is_told_so(text: str) -> None:
    """BM25 scores all passages 0 there; nobody is told of queries that are merely unknown."""
    made = index_of(["深層学習の入門", "ต้นไม้ใหญ่"])
    with pytest.warns(UserWarning, match="give a tokenizer for the language as tokenizer="):
        made.best(text, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for silent in ("unknown words", "", "深層学習の入門"):
            made.best(silent, 1)
        index_of(["a"], tokenizer=list).best(text, 1)
        PassageIndex().best(text, 1)
