"""Any history of an index against a plain list of what it should hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from shared_core import HybridIndex, Passage, rank, tokenize
from shared_core.index.sparse import snapshot
from shared_core.types import Query
from tests.core.making import preselect_from, random_vectors, zipf_texts

Floats = npt.NDArray[np.float64]

TEXTS = [*zipf_texts(27, vocabulary=9, longest=12, skew=0.7), "", "w0", "w1 w1 snake_case"]
VECTORS = np.concatenate([random_vectors(28), np.zeros((1, 8)), np.ones((1, 8))])
WORDS = ["w0 w3", "w1 w8 w1 case", "w4 nowhere", "unknown", "w2"]
QUERIES = [*zip(WORDS, [*random_vectors(4, seed=9), np.zeros(8)], strict=True)]
FILTERS: list[Any] = [None, {"lang": "en"}, {"lang": ["de", "fr"], "n": 4}, lambda m: m["n"] % 2]
FOREIGN = Passage("foreign", "w1 w8 w8 unheard of")
NUMBERS = st.sets(st.integers(0, 11), max_size=12)


def bm25(query: str, texts: list[str], corpus: list[str], *, variant: str) -> Floats:
    """Return the scores of texts by the statistics of a corpus, from the formulas."""
    words = sorted({*tokenize(query)} & {word for text in corpus for word in tokenize(text)})
    if not words:
        return np.zeros(len(texts))
    split = [tokenize(text) for text in corpus]
    n, lengths = len(split), [len(tokens) for tokens in split]
    vocabulary = sorted({word for tokens in split for word in tokens})
    df = np.array([sum(word in tokens for tokens in split) for word in vocabulary])
    if variant == "okapi":
        idf, k1 = np.log(n - df + 0.5) - np.log(df + 0.5), 1.5
        idf = np.where(idf < 0, 0.25 * idf.mean(), idf) * (k1 + 1)
    else:
        idf, k1 = np.log(1 + (n - df + 0.5) / (df + 0.5)), 1.2
    given = [tokenize(text) for text in texts]
    norm = k1 * (0.25 + 0.75 * np.array([len(tokens) for tokens in given]) / np.mean(lengths))
    scores = np.zeros(len(texts))
    for word in words:
        count = np.array([tokens.count(word) for tokens in given])
        times = tokenize(query).count(word)
        scores += times * idf[vocabulary.index(word)] * count / (count + norm)
    return scores


def unit(vectors: npt.ArrayLike) -> Floats:
    wide = np.asarray(vectors, np.float64).reshape(-1, 8)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, lengths, out=wide.copy(), where=lengths > 0)


def best(rows: Any, scores: Floats, k: int) -> list[int]:
    return sorted(rows, key=lambda row: (-round(scores[row], 6), row))[:k]


@dataclass
class Held:
    """An index, and what it should hold: id -> passage and vector, in insertion order."""

    index: HybridIndex
    holds: dict[str, tuple[Passage, npt.NDArray[Any]]] = field(default_factory=dict)

    def check(self, options: dict[str, str]) -> None:
        index, passages = self.index, [passage for passage, _ in self.holds.values()]
        assert (index.passages, index.ids, len(index)) == (passages, [*self.holds], len(self.holds))
        assert [f"p{n}" in index for n in range(12)] == [f"p{n}" in self.holds for n in range(12)]
        given, embedded = index.embedded()
        cosine, held = options["metric"] == "cosine", [vector for _, vector in self.holds.values()]
        assert given == passages
        np.testing.assert_allclose(
            embedded.reshape(-1, 8), unit(held) if cosine else np.reshape(held, (-1, 8)), atol=1e-6
        )
        anew = HybridIndex(**options)  # type: ignore[arg-type]
        anew.add(passages, held)
        for text, vector in QUERIES:
            for where in FILTERS:
                for depth in (2, 20):
                    self.check_pool(text, vector, where, depth, options)
            found = index.search(text, vector, k=3, where=FILTERS[1])
            again = anew.search(text, vector, k=3, where=FILTERS[1])
            assert found == again

    def check_pool(
        self, text: str, vector: Any, where: Any, depth: int, options: dict[str, str]
    ) -> None:
        """Compare with the definition: both legs' best, every score, and what comes of them."""
        passages = [passage for passage, _ in self.holds.values()]
        texts, variant = [passage.text for passage in passages], options["variant"]
        vectors = np.array([vector for _, vector in self.holds.values()]).reshape(-1, 8)
        cosine = options["metric"] == "cosine"
        dense = (unit(vectors) @ unit(vector)[0]) if cosine else vectors @ vector
        sparse = bm25(text, texts, texts, variant=variant)
        passes = (
            where
            if callable(where)
            else lambda metadata: all(
                metadata[key] == value or metadata[key] in np.atleast_1d(value).tolist()
                for key, value in (where or {}).items()
            )
        )
        rows = [row for row, passage in enumerate(passages) if passes(passage.metadata)]
        matching = [row for row in rows if {*tokenize(text)} & {*tokenize(texts[row])}]
        sparse_hits = best(matching, sparse, depth)
        union = sorted({*best(rows, dense, depth), *sparse_hits})

        (pool,) = self.index.pool([Query(text, vector)], depth, where=where)
        assert [each.id for each in pool.passages] == [passages[row].id for row in union]
        np.testing.assert_allclose(pool.dense, dense[union], atol=1e-5)
        np.testing.assert_allclose(pool.sparse, sparse[union], atol=1e-9)
        ranking = self.index.search(text, vector, k=3, fetch_k=depth, where=where)
        if depth >= 3:
            expected = rank(pool.dense, pool.sparse, k=3, cosines=cosine)
            assert (ranking.indices, ranking.scores) == (expected.indices, expected.scores)
            assert [*ranking.passages] == [pool.passages[at] for at in expected.indices]
        words = self.index.best(text, depth, where=where)
        assert [passage.id for passage, _ in words] == [passages[row].id for row in sparse_hits]
        scores = self.index.scores(text, [FOREIGN, *passages])
        expected_scores = bm25(text, [FOREIGN.text, *texts], texts, variant=variant)
        np.testing.assert_allclose(scores, expected_scores, atol=1e-9)


def by_pickle(index: HybridIndex) -> HybridIndex:
    copied: HybridIndex = pickle.loads(pickle.dumps(index))
    return copied


def by_saving(index: HybridIndex) -> HybridIndex:
    with TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        return HybridIndex.load(Path(folder) / "index")


class History(RuleBasedStateMachine):
    """Two indexes, of which the second is a copy of an earlier state of the first, or reverse."""

    both: list[Held]
    version = 0

    @initialize(
        variant=st.sampled_from(["lucene", "okapi"]),
        metric=st.sampled_from(["cosine", "inner_product"]),
    )
    def begin(self, variant: str, metric: str) -> None:
        self.options = {"variant": variant, "metric": metric}
        self.both = [Held(HybridIndex(**self.options)) for _ in range(2)]  # type: ignore[arg-type]

    @rule(which=st.integers(0, 1), numbers=NUMBERS)
    def add(self, which: int, numbers: set[int]) -> None:
        held, new = self.both[which], {}
        for number in numbers:
            self.version += 1
            text, vector = TEXTS[self.version % 30], VECTORS[self.version * 7 % 30]
            metadata = {"n": self.version % 8, "lang": ("en", "de", "fr")[self.version % 3]}
            new[f"p{number}"] = (Passage(f"p{number}", text, metadata), vector)
        ids = held.index.add([each for each, _ in new.values()], [v for _, v in new.values()])
        assert ids == [*new]
        held.holds = {id: held.holds[id] for id in held.holds if id not in new} | new

    @rule(which=st.integers(0, 1), numbers=NUMBERS)
    def delete(self, which: int, numbers: set[int]) -> None:
        held, ids = self.both[which], [f"p{number}" for number in numbers]
        there = [id for id in ids if held.holds.pop(id, None)]
        assert held.index.delete(ids) == there

    @rule(which=st.integers(0, 1))
    def compact(self, which: int) -> None:
        self.both[which].index.compact()

    @rule(which=st.integers(0, 1), copied=st.sampled_from([copy, deepcopy, by_pickle, by_saving]))
    def replace_the_other_by_a_copy(
        self, which: int, copied: Callable[[HybridIndex], HybridIndex]
    ) -> None:
        held = self.both[which]
        self.both[1 - which] = Held(copied(held.index), {**held.holds})

    @invariant()
    def both_are_found(self) -> None:
        for held in self.both:
            held.check_pool(*QUERIES[self.version % 5], FILTERS[self.version % 4], 3, self.options)

    def teardown(self) -> None:
        for held in self.both:
            held.check(self.options)


@pytest.mark.usefixtures("either_way")
def test_any_history_gives_what_a_plain_list_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Additions, replacements, deletions, compactions, copies, saving: passages, both scores.

    And the same to the last bit as an index of what is left, built at once.
    """
    monkeypatch.setattr(snapshot, "COMPACT", 10)
    preselect_from(4, monkeypatch)
    run_state_machine_as_test(History, settings=settings(max_examples=30, stateful_step_count=15))


class Owned(HybridIndex):
    owner = "nobody"


@pytest.mark.parametrize("copied", [copy, deepcopy, by_pickle])
def test_a_copy_of_a_subclass_keeps_the_class_and_its_attributes(copied: Any) -> None:
    index = Owned()
    index.owner = "me"
    assert (type(copied(index)), copied(index).owner) == (Owned, "me")
