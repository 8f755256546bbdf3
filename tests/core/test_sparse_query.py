"""The best rows of the sparse leg: what scoring every row gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import BM25Index
from shared_core.native import kernels

from .making import zipf_texts

needs_kernels = pytest.mark.skipif(not kernels.built, reason="the kernels are not built here")


def plainly(index: BM25Index, query: str) -> tuple[np.ndarray, np.ndarray]:
    """Return every row's score, and whether it matches, by numpy."""
    scores, matching = index.query(query)._everywhere
    return scores, matching


def best(scores: np.ndarray, findable: np.ndarray, k: int) -> list[int]:
    rows = findable.nonzero()[0].tolist()
    return sorted(sorted(rows, key=lambda row: (-scores[row], row))[:k])


@pytest.mark.usefixtures("either_way")
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
@settings(max_examples=150)
def test_top_is_what_scoring_every_row_gives(
    variant: str,
    seed: int,
    n: int,
    terms: list[int],
    k: int,
    keep: float,
    deleted: float,
    skew: float,
    parts: int,
) -> None:
    """On Zipf corpora of many windows and segments, with filters and deletions; ties by row."""
    rng = np.random.default_rng(seed)
    index = BM25Index(variant=variant)  # type: ignore[arg-type]
    texts = zipf_texts(n, seed=seed, skew=skew)
    for part in range(parts):
        index.add(texts[n * part // parts : n * (part + 1) // parts])
    index.delete((rng.random(n) < deleted).nonzero()[0])
    allowed = None if keep == 1.0 else rng.random(n) < keep
    query = " ".join(f"w{term}" for term in terms)

    scores, matching = plainly(index, query)
    alive = np.ones(n, bool) if index.view.alive is None else index.view.alive
    findable = matching & alive if allowed is None else matching & alive & allowed
    prepared = index.query(query)
    best_rows, best_scores = prepared.best(k, allowed)
    assert best_rows.tolist() == best(scores, findable, k)
    assert best_scores.tolist() == scores[best_rows].tolist()
    for rows in (np.arange(n), rng.permutation(n), rng.integers(0, n, 5)):
        assert prepared.at(rows).tolist() == scores[rows].tolist()


@needs_kernels
@given(seed=st.integers(0, 10_000), k=st.integers(1, 40), parts=st.integers(1, 3))
def test_counts_of_any_width_score_alike(seed: int, k: int, parts: int) -> None:
    """A word that occurs 70,000 times in one text makes its segment's counts wider."""
    rng = np.random.default_rng(seed)
    texts = zipf_texts(200, seed=seed)
    texts[int(rng.integers(200))] += " w3" * 70_000
    index = BM25Index(tokenizer=str.split)
    for part in range(parts):
        index.add(texts[200 * part // parts : 200 * (part + 1) // parts])
    assert {s.counts.dtype for s in index.view.segments} & {np.dtype(np.int32)}
    scores, matching = plainly(index, "w3 w0 w17")
    assert sorted(index.query("w3 w0 w17").best(k)[0].tolist()) == best(scores, matching, k)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("rare", "frequent", "share"),
    [(1200, 4000, 0.87), (876, 4000, 0.99), (596, 1400, 0.58), (1790, 5350, 0.98)],
)
@pytest.mark.parametrize("segment", [0, 1])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_bound_of_the_frequent_term_is_used_to_the_full(
    rare: int, frequent: int, share: float, segment: int, k: int
) -> None:
    """A row that is behind by `share` of the bound overtakes by holding the frequent term often.

    With b = 0 a term that occurs 1,000 times weighs 0.999 of what it can weigh at most. The rows
    before fill the best k, and no row with the frequent term alone can come there; whether its
    postings are gone through (where it is up to 3 times as frequent) or looked up, and in either
    segment.
    """
    before = ["rare " * 8] * 200 + ["none nil null nought void"] * 4500
    overtaking = ["rare " + "frequent " * 1000] * k
    behind = ["rare"] * (rare - 200 - k) + ["frequent"] * (frequent - k - 10)
    elsewhere = ["frequent"] * 10
    if segment == 0:
        parts = [before + overtaking + behind, elsewhere]
    else:
        parts = [before + elsewhere, overtaking + behind]
    index = BM25Index(k1=1.2, b=0.0)
    index.add(parts[0])
    index.add(parts[1] + ["none"] * (12_000 - len(parts[0] + parts[1])))
    assert len(index.view.segments) == 2
    row = 4700 if segment == 0 else 4710
    first, lift = index.scores_at("rare", [0])[0], index.scores_at("frequent", [row])[0]
    assert (first - index.scores_at("rare", [row])[0]) / lift == pytest.approx(share, abs=0.01)
    best_rows, _ = index.query("rare frequent").best(k)
    assert sorted(best_rows.tolist()) == list(range(row, row + k))


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("copies", range(2, 12))
def test_equal_texts_have_equal_scores_and_come_in_row_order(copies: int) -> None:
    """A row's score must not depend on where it stands."""
    rng = np.random.default_rng(copies)
    for terms in range(1, 8):
        stops = [f"s{n}" for n in range(terms)]
        text = " ".join(["rare", *(word for word in stops for _ in range(rng.integers(1, 4)))])
        rest = [" ".join(word for word in stops if rng.random() < 0.5) for _ in range(300)]
        half = copies // 2
        index = BM25Index.from_texts([text] * half + rest + [text] * (copies - half))
        prepared = index.query("rare " * 9 + " ".join(stops))
        rows = [*range(half), *range(half + 300, copies + 300)]
        assert sorted(prepared.best(copies)[0].tolist()) == rows
        assert len(set(prepared.at(np.array(rows)).tolist())) == 1


@pytest.mark.usefixtures("either_way")
def test_rows_that_match_only_a_term_of_zero_weight_are_found() -> None:
    """Okapi weighs a word of half the texts 0; the rows that hold it match all the same."""
    texts = ["half"] * 100 + ["rare half"] * 2 + ["other"] * 100 + ["rare"] * 2
    index = BM25Index.from_texts(texts, variant="okapi")
    assert index.query("rare half").best(200)[0].size == 104


@pytest.mark.usefixtures("either_way")
def test_negative_weights_hide_nothing() -> None:
    """In tiny corpora okapi scores may be negative, and such a row is still found, last."""
    index = BM25Index.from_texts(["a b", "a"], variant="okapi")
    assert index.scores("a")[0] < 0
    assert index.query("a b").best(2)[0].size == 2


@pytest.mark.usefixtures("either_way")
def test_a_frequent_term_alone_is_found() -> None:
    """Where nothing in the query is rare there is nothing to leave out by."""
    index = BM25Index.from_texts(["a"] * 300 + ["a a"] * 5)
    assert sorted(index.query("a").best(5)[0].tolist()) == list(range(300, 305))


@pytest.mark.usefixtures("either_way")
def test_without_a_known_word_nothing_is_found() -> None:
    """Nor does anything score."""
    prepared = BM25Index.from_texts(["a", "b"]).query("c")
    assert sorted(prepared.best(3)[0].tolist()) == []
    assert prepared.at(np.arange(2)).tolist() == [0, 0]
