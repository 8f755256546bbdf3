"""Pruning of the sparse leg is exact: small thresholds make it happen on small corpora."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import BM25Index
from shared_core.index import sparse_query
from shared_core.index.sparse_query import SparseQuery

from .making import zipf_texts


@pytest.fixture(scope="module", autouse=True)
def prune_early() -> object:
    """Make the rare terms rarer than any corpus of these tests would by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_query, "DIRECT", 8)
        patch.setattr(sparse_query, "SPARE", 64)
        patch.setattr(sparse_query, "FEW", 4)
        yield


def full(index: BM25Index, query: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows' scores, and which rows match, without pruning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_query, "DIRECT", 10**9)
        prepared = index.query(query)
        rows = np.arange(index.view.size)
        return prepared.at(rows), np.isin(rows, prepared.top(rows.size + 1))


def is_pruned(query: SparseQuery) -> bool:
    return query._rare < len(query._terms)


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 400),
    terms=st.lists(st.integers(0, 59), min_size=1, max_size=8),
    k=st.integers(1, 30),
    keep=st.sampled_from([1.0, 0.5, 0.05]),
    deleted=st.sampled_from([0.0, 0.3, 0.95]),
    skew=st.sampled_from([0.4, 1.2]),
    sorts=st.sampled_from([0, 64, 10**6]),
)
@settings(max_examples=200)
def test_top_is_what_scoring_every_row_gives(
    variant: str,
    seed: int,
    n: int,
    terms: list[int],
    k: int,
    keep: float,
    deleted: float,
    skew: float,
    sorts: int,
) -> None:
    """On Zipf corpora, with filters and deletions: the same rows, best first, ties by row."""
    rng = np.random.default_rng(seed)
    index = BM25Index(variant=variant)  # type: ignore[arg-type]
    texts = zipf_texts(n, seed=seed, skew=skew)
    index.add(texts[: n // 3])
    index.add(texts[n // 3 :])
    index.delete((rng.random(n) < deleted).nonzero()[0])
    allowed = None if keep == 1.0 else rng.random(n) < keep
    query = " ".join(f"w{term}" for term in terms)

    scores, matching = full(index, query)
    findable = matching if allowed is None else matching & allowed
    prepared = index.query(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_query, "SORTED", sorts)
        found = prepared.top(k, allowed)

    assert findable[found].all()
    assert found.size == min(k, findable.sum())
    best = np.sort(scores[findable])[::-1][:k]
    np.testing.assert_allclose(scores[found], best, atol=1e-9)
    np.testing.assert_allclose(prepared.at(found), best, atol=1e-9)
    ties = np.isclose(best[1:], best[:-1], rtol=0, atol=1e-12)
    exact = prepared.at(found)
    assert (found[1:] > found[:-1])[ties & (exact[1:] == exact[:-1])].all()


@pytest.mark.parametrize(("holders", "share"), [(298, 0.55), (192, 0.75), (124, 0.95)])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_bound_of_the_frequent_term_is_used_to_the_full(
    holders: int, share: float, k: int
) -> None:
    """A row that is behind by `share` of the bound overtakes by holding the frequent term often.

    With b = 0 a term that occurs 1,000 times weighs 0.999 of its bound, so a bound that were
    any smaller than it is would leave that row out.
    """
    texts = ["rare " * 4] * (k + 1) + ["rare " + "frequent " * 1000] * k
    texts += ["rare"] * (holders - 2 * k - 1) + ["frequent"] * (500 - k)
    texts += ["none"] * (1000 - len(texts))
    index = BM25Index.from_texts(texts, k1=1.2, b=0.0)
    prepared = index.query("rare frequent")
    rare, frequent = (index.scores_at(term, [k + 1])[0] for term in ("rare", "frequent"))
    behind = index.scores_at("rare", [0])[0] - rare
    assert behind / frequent == pytest.approx(share, abs=0.01)
    assert prepared.top(k).tolist() == list(range(k + 1, 2 * k + 1))
    assert is_pruned(prepared)


def test_these_thresholds_do_prune() -> None:
    """The tests of this module would prove nothing if every term were scored in full."""
    index = BM25Index.from_texts(zipf_texts(400, seed=1))
    prepared = index.query("w55 w0 w1")
    prepared.top(3)
    assert is_pruned(prepared)


@pytest.mark.parametrize("copies", range(2, 12))
def test_equal_texts_have_equal_scores_and_come_in_row_order(copies: int) -> None:
    """A row's score must not depend on where among the scored rows it stands."""
    rng = np.random.default_rng(copies)
    for terms in range(1, 8):
        stops = [f"s{n}" for n in range(terms)]
        text = " ".join(["rare", *(word for word in stops for _ in range(rng.integers(1, 4)))])
        rest = [" ".join(word for word in stops if rng.random() < 0.5) for _ in range(300)]
        index = BM25Index.from_texts([text] * copies + rest)
        prepared = index.query("rare " * 9 + " ".join(stops))
        assert prepared.top(copies).tolist() == list(range(copies))
        assert is_pruned(prepared)
        assert len(set(prepared.at(np.arange(copies)).tolist())) == 1


def test_rows_that_match_only_a_term_of_zero_weight_are_found_either_way() -> None:
    """Okapi weighs a word of half the texts 0; whether its rows match is no matter of size."""
    texts = ["half"] * 100 + ["rare half"] * 2 + ["other"] * 100 + ["rare"] * 2
    index = BM25Index.from_texts(texts, variant="okapi")
    _, matching = full(index, "rare half")
    assert matching.sum() == 104
    assert index.query("rare half").top(200).size == 104


def test_a_frequent_term_alone_is_found() -> None:
    """Where nothing in the query is rare there is nothing to prune by."""
    index = BM25Index.from_texts(["a"] * 300 + ["a a"] * 5)
    assert index.query("a").top(5).tolist() == list(range(300, 305))
