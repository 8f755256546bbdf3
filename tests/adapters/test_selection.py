"""Near-duplicates, one source's share, a least similarity, and the order of the documents."""

from typing import Any

import pytest

from shared_core import CAUS, NeighbourSpans, Passage

from .drivers import Adapter, core_index, ids, search

TEXTS = [
    "padding and stride of a convolution",
    "padding and stride of one convolution",
    "the kernel of a convolution",
    "stride, dilation, groups and padding",
    "a pooling window has stride and padding, too",
    "an optimizer step",
]
CORPUS = [
    Passage(f"p{at}", text, {"doc_id": "ab"[at % 2], "chunk_id": 9 - at})
    for at, text in enumerate(TEXTS)
]
QUERY = "padding and stride of a convolution"
INDEX = core_index(CORPUS)


@pytest.mark.parametrize(
    "options",
    [
        {"distinct": 0.7},
        {"per_source": 1},
        {"distinct": 0.7, "per_source": 2, "min_similarity": 0.3},
        {"placement": "source_order", "psi": "always"},
        {"placement": "source_order", "psi": "always", "expand": NeighbourSpans(window=1)},
    ],
    ids=str,
)
def test_both_frameworks_choose_and_order_alike(adapter: Adapter, options: dict[str, Any]) -> None:
    """And say of each passage what was left out because of it."""
    retriever = adapter.build(CORPUS, k=4, **options)
    found = adapter.ask(retriever, QUERY)
    assert found == search(INDEX, QUERY, CAUS(k=4, **options))
    if options.get("distinct"):
        assert found[0].why["duplicates"] == ["p1"]
        assert "p1" not in ids(adapter.retrieve(retriever, QUERY))
    if options.get("min_similarity"):
        assert found[0].why["below_min_similarity"] == 1


def test_given_candidates_are_chosen_from_alike(adapter: Adapter) -> None:
    """By the step that scores them; a duplicate makes room for another."""
    items = adapter.items(CORPUS, [1.0 - at / 10 for at in range(6)])
    step = adapter.rescorer(k=2, distinct=0.7, per_source=1, alpha=1.0)
    kept = adapter.rescore(step, items, QUERY)
    assert ids(kept) == ["p0", "p3"]
    assert adapter.hits(kept)[0].why["duplicates"] == ["p1"]
    assert adapter.hits(kept)[0].why["same_source"] == ["p2"]
    placed = adapter.rescorer(k=4, alpha=1.0, placement="source_order", psi="always")
    assert ids(adapter.rescore(placed, items, QUERY)) == ["p2", "p0", "p3", "p1"]


def test_words_of_candidates_are_those_of_the_tokenizer(adapter: Adapter) -> None:
    """Of the step, or of its corpus."""
    items = adapter.items([Passage("a", "ab cd"), Passage("b", "abcd")], [1.0, 0.5])
    options: dict[str, Any] = {"distinct": 0.7, "tokenizer": list}
    corpus = adapter.items([Passage("a", "ab cd")])
    for step in (adapter.rescorer(**options), adapter.rescorer_of(corpus, **options)):
        assert ids(adapter.rescore(step, items, "ab")) == ["a"]


def test_documents_that_do_not_say_where_they_stand_are_told_of(adapter: Adapter) -> None:
    """And keep their order."""
    step, bare = adapter.placer("source_order"), [Passage(each.id, each.text) for each in CORPUS]
    with pytest.warns(UserWarning, match="no passage says where it stands in which document"):
        assert ids(adapter.place(step, adapter.items(bare))) == [each.id for each in CORPUS]


def test_passages_that_name_no_document_are_told_of(adapter: Adapter) -> None:
    """Each counts as a document of its own, so that `per_source` leaves nothing out."""
    bare = [Passage(each.id, each.text) for each in CORPUS]
    with pytest.warns(UserWarning, match="per_source=1 leaves nothing out, as no passage names"):
        assert len(adapter.ask(adapter.build(bare, k=4, per_source=1), QUERY)) == 4


def test_documents_in_a_pipe_are_put_into_the_order_of_their_sources(adapter: Adapter) -> None:
    step = adapter.placer("source_order")
    assert ids(adapter.place(step, adapter.items(CORPUS))) == ["p4", "p2", "p0", "p5", "p3", "p1"]
