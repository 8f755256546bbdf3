"""Which passages of a pool become the best k."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from shared_core import CAUS, HybridIndex, Passage
from shared_core.selection import overlap
from shared_core.types import Query

from .making import random_vectors

WORDS = [f"w{at}" for at in range(60)]
SAME = " ".join(WORDS)
COPY = " ".join(["other", *WORDS[1:]])


def pairs(text: str) -> list[str]:
    return [text[at : at + 2] for at in range(len(text) - 1)]


def index_of(texts: list[str], **options: Any) -> HybridIndex:
    index = HybridIndex(**options)
    sources = [{"source": "one" if at < 3 else f"s{at}"} for at in range(len(texts))]
    passages = [Passage(f"p{at}", text, sources[at]) for at, text in enumerate(texts)]
    index.add(passages, random_vectors(len(texts), seed=3))
    return index


TEXTS = [SAME, COPY, "w1 w2 w3", "w4 w5", "w6 w7", "w8 nothing"]
QUERY = Query("w1 w2 w3 w4", random_vectors(6, seed=3)[0])


def found(index: HybridIndex, caus: CAUS) -> list[str]:
    (arrangement,) = caus.search(index, [QUERY])
    return [passage.id for passage in arrangement.passages]


def test_a_copy_with_a_word_changed_is_left_out_and_another_takes_its_place() -> None:
    """Of a group the best stays; with more changed, all do."""
    index = index_of(TEXTS)
    everything = found(index, CAUS(k=6))
    kept = found(index, CAUS(k=5, distinct=0.95))
    twin = next(id for id in everything if id in ("p0", "p1"))
    assert [id for id in everything if id not in ({"p0", "p1"} - {twin})] == kept
    assert found(index, CAUS(k=6, distinct=0.97)) == everything
    assert overlap(Counter(SAME.split()), Counter(COPY.split())) == pytest.approx(59 / 61)


def test_words_are_those_of_the_tokenizer() -> None:
    """As where a script has no spaces; by default a clause is a word."""
    text = "请先关闭电源然后拔下插头再打开后盖检查保险丝是否已经熔断"
    texts = [text, f"注意{text}", "巴黎是法国首都", *TEXTS[3:]]
    copies, caus = {"p0", "p1"}, CAUS(k=6, distinct=0.8)
    assert copies < {*found(index_of(texts), caus)}
    assert len(copies & {*found(index_of(texts, tokenizer=pairs), caus)}) == 1


def test_texts_without_words_are_copies_only_if_they_are_equal() -> None:
    texts = ["→ ← ↑", "😀", "😀", *TEXTS[3:]]
    kept = found(index_of(texts), CAUS(k=6, distinct=0.95))
    assert len(kept) == 5
    assert "p0" in kept


def test_one_source_gets_so_many() -> None:
    """Passages of no source are sources of their own."""
    index = index_of(TEXTS)
    kept = found(index, CAUS(k=6, per_source=2))
    assert len({"p0", "p1", "p2"} & {*kept}) == 2
    assert {"p3", "p4", "p5"} <= {*kept}


def test_what_is_less_similar_is_cut_off_before_fusion() -> None:
    """The rest is scored as if it had never been there; nothing may be left."""
    index = index_of(TEXTS)
    (pool,) = index.pool([QUERY], 50)
    cosines = dict(zip([each.id for each in pool.passages], pool.dense, strict=True))
    least = sorted(cosines.values())[3]
    (cut,) = CAUS(min_similarity=least, fusion="min_max").search(index, [QUERY])
    assert {each.id for each in cut.passages} == {id for id, at in cosines.items() if at >= least}
    assert cut.explain()[0]["below_min_similarity"] == 3
    assert min(cut.ranking.dense_norm) < 1e-6
    assert found(index, CAUS(min_similarity=1.0, k=2)) in ([], ["p0"])
    with pytest.raises(ValueError, match="is a cosine, and the dense scores are not"):
        found(index_of(TEXTS, metric="inner_product"), CAUS(min_similarity=0.5))
