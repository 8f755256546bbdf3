"""Neighbour spans in both frameworks: the core's, from a retriever and from a step behind one."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from langchain_posrag import NeighbourSpanTransformer
from llamaindex_posrag import NeighbourSpanPostprocessor
from shared_core import CAUS, NeighbourSpans, Passage
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import PassageNeighbours, place_spans
from shared_core.placement import UShapeBestLast

from .drivers import PROFILE, TOPICS, Hit, LangChain, LlamaIndex, core_index, embed, search

QUERIES = ("convolution with stride", "softmax attention head", "learning rate", "unknown words")
SIZE, OVERLAP = 90, 25
WINDOW = NeighbourSpans(window=1, token_budget=None)
EXPANSIONS = [
    WINDOW,
    NeighbourSpans(window=2, token_budget=150),
    NeighbourSpans(window="auto", token_budget=400),
    NeighbourSpans(window=2, token_budget=None, min_continuity=None, weights=(1, 0, 0, 0)),
    NeighbourSpans(window=3, count_tokens=lambda text: len(text.split())),
]


def chunked() -> list[Passage]:
    """Return overlapping chunks of five documents with number, start, heading and language."""
    passages = []
    for seed, name in enumerate("abcde"):
        rng = np.random.default_rng(seed)
        words = [word for topic in rng.permutation(TOPICS) for word in topic.split()]
        text = " ".join(f"{rng.choice(words)}{'.' if at % 7 == 6 else ''}" for at in range(120))
        for number, start in enumerate(range(0, len(text) - OVERLAP, SIZE - OVERLAP)):
            metadata = {
                "doc_id": name,
                "chunk_id": number,
                "start_index": start,
                "heading": f"part {number // 4}",
                "lang": "en" if seed % 2 else "de",
                "tags": ["x"],
            }
            passages.append(Passage(f"{name}{number}", text[start : start + SIZE], metadata))
    return passages


CORPUS = chunked()
INDEX = core_index(CORPUS)


class LangChainSpans(LangChain):
    """`NeighbourSpanTransformer`."""

    step = NeighbourSpanTransformer

    def step_over(
        self, passages: Sequence[Passage], model: Any = None, **options: Any
    ) -> NeighbourSpanTransformer:
        """Return the step that takes neighbours from passages."""
        return self.step.from_documents(self.items(passages), embeddings=model, **options)


class LlamaIndexSpans(LlamaIndex):
    """`NeighbourSpanPostprocessor`."""

    step = NeighbourSpanPostprocessor

    def item(self, text: str, id: str, **metadata: Any) -> TextNode:
        """Return a node with document and offset where LlamaIndex keeps them."""
        node = super().item(text, id or uuid.uuid4().hex, **metadata)
        node.start_char_idx = metadata.get("start_index")
        if "doc_id" in metadata:
            source = RelatedNodeInfo(node_id=metadata["doc_id"])
            node.relationships[NodeRelationship.SOURCE] = source
        return node

    def step_over(
        self, passages: Sequence[Passage], model: Any = None, **options: Any
    ) -> NeighbourSpanPostprocessor:
        """Return the step that takes neighbours from passages."""
        return self.step.from_nodes(self.items(passages), embed_model=model, **options)


Adapter = LangChainSpans | LlamaIndexSpans
DRIVERS = LangChainSpans, LlamaIndexSpans


def chunks_of(hits: Sequence[Hit]) -> list[list[str]]:
    return [hit.why["chunks"] for hit in hits]


def expand(
    adapter: Adapter, step: Any, passages: Sequence[Passage], *scores: float | None
) -> list[Hit]:
    return adapter.hits(adapter.place(step, adapter.items(passages, scores)))


# Out of a retriever.


@pytest.mark.parametrize("spans", EXPANSIONS, ids=lambda spans: f"window={spans.window}")
async def test_a_retriever_gives_the_cores_spans(adapter: Adapter, spans: NeighbourSpans) -> None:
    """In every way to call it: ids, texts, metadata, scores, explanations and order."""
    options: dict[str, Any] = {"k": 6, "psi": PROFILE, "expand": spans}
    expected = [search(INDEX, query, CAUS(**options)) for query in QUERIES]
    retriever = adapter.build(CORPUS, **options)
    assert [adapter.ask(retriever, query) for query in QUERIES] == expected
    assert [await adapter.aask(retriever, query) for query in QUERIES] == expected
    assert adapter.ask_many(retriever, QUERIES) == expected
    assert any(len(hit.why["chunks"]) > 1 for hits in expected for hit in hits)


@pytest.mark.parametrize("over", ["index", "store"])
def test_no_neighbour_comes_from_beyond_the_filter(adapter: Adapter, over: str) -> None:
    """A chunk of another tenant stands in the middle of the document."""
    tenants = [
        Passage(p.id, p.text, {**p.metadata, "tenant": "b" if p.id == "a5" else "a"})
        for p in CORPUS
    ]
    build = adapter.build if over == "index" else adapter.over_store
    spans = NeighbourSpans(window=3, min_continuity=None)
    retriever = build(tenants, k=1, alpha=0.0, expand=spans)
    (hit,) = adapter.ask(retriever, CORPUS[4].text, where={"tenant": "a"})
    assert hit.why["chunks"] == ["a1", "a2", "a3", "a4"]
    (hit,) = adapter.ask(retriever, CORPUS[4].text)
    assert hit.why["chunks"] == [f"a{number}" for number in range(1, 8)]


def test_a_tokenizer_has_to_be_given_again(adapter: Adapter, tmp_path: Path) -> None:
    adapter.build(CORPUS, expand=EXPANSIONS[-1]).save(tmp_path / "counted")
    with pytest.raises(ValueError, match="give expand= again"):
        adapter.load(tmp_path / "counted")
    assert adapter.load(tmp_path / "counted", expand=WINDOW).expand == WINDOW


# Out of a step behind any retriever.


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("spans", EXPANSIONS, ids=lambda spans: f"window={spans.window}")
def test_a_step_gives_the_cores_spans(
    adapter: Adapter, spans: NeighbourSpans, embedded: bool
) -> None:
    """With and without embeddings, by any scores, missing, tied and negative; given ones stay."""
    vectors = [embed(passage.text) for passage in CORPUS] if embedded else None
    source = PassageNeighbours(CORPUS, ChunkKeys(), vectors)
    step = adapter.step_over(CORPUS, adapter.model() if embedded else None, expand=spans)
    rng = np.random.default_rng(5)
    for scores in ([0.9, 0.8, 0.8, -0.1, 0.3], [None] * 5, [0.5, None, 0.2, float("nan"), 0.5]):
        given = [CORPUS[row] for row in rng.choice(len(CORPUS), 5, replace=False)]
        expected = [
            Hit(given[best].id, span.text, dict(given[best].metadata), why["score"], why)
            for best, span, why in place_spans(given, scores, spans, ChunkKeys(), source)
        ]
        items = adapter.items(given, scores)
        before = copy.deepcopy(items)
        found = adapter.hits(adapter.place(step, items))
        assert found == expected
        for hit in found:
            if len(hit.why["chunks"]) > 1:
                hit.metadata["tags"].append("changed")
        assert str(items) == str(before)
        assert expand(adapter, step, given, *scores) == expected


def test_without_chunks_what_was_retrieved_is_merged(adapter: Adapter) -> None:
    """Neighbours among the results become one, none is fetched."""
    given = [CORPUS[number] for number in (3, 1, 2, 6)]
    found = expand(adapter, adapter.step(), given, 0.9, 0.5, 0.4, 0.3)
    assert chunks_of(found) == [["a1", "a2", "a3"], ["a6"]]
    assert expand(adapter, adapter.step(), []) == []


def test_chunks_that_cannot_be_asked_for_neighbours_are_refused(adapter: Adapter) -> None:
    """Such as the documents themselves, which `step_over` takes."""
    with pytest.raises(ValueError, match="ChunkSource"):
        adapter.step(chunks=adapter.items(CORPUS))


def test_distances_are_negated(adapter: Adapter) -> None:
    given = [CORPUS[number] for number in (0, 4, 8)]
    order = NeighbourSpans(window=0, order="score_descending")
    step = adapter.step(expand=order, higher_is_better=False)
    found = expand(adapter, step, given, 0.2, 0.9, 0.5)
    assert [(hit.id, hit.score) for hit in found] == [("a0", -0.2), ("a8", -0.5), ("a4", -0.9)]
    with pytest.raises(ValueError, match="must be finite"):
        expand(adapter, step, given, 0.2, float("inf"), 0.1)


@pytest.mark.parametrize("order", ["back_first", "score_descending", UShapeBestLast()])
def test_a_span_says_where_it_stands_now(adapter: Adapter, order: str | UShapeBestLast) -> None:
    """Not where the retriever had put its seed, nor why; what else was said stays."""
    spans = NeighbourSpans(window=0, token_budget=None, order=order)
    found = adapter.retrieve(adapter.build(CORPUS, k=6, psi=PROFILE), QUERIES[0])
    before = {hit.id: hit.why for hit in adapter.hits(found)}
    hits = adapter.hits(adapter.place(adapter.step(expand=spans), found))
    assert [hit.why["slot"] for hit in hits] == [*range(6)]
    assert {hit.why["placement"] for hit in hits} == {getattr(order, "name", order)}
    by_rank = sorted(hits, key=lambda hit: -hit.why["span_score"])
    assert [hit.why["rank"] for hit in by_rank] == [*range(6)]
    for hit in hits:
        assert not {"psi", "gate", "reason"} & {*hit.why}
        assert hit.why["dense"] == before[hit.id]["dense"]
        assert hit.score == before[hit.id]["score"]


def test_names_of_the_metadata_are_the_callers(adapter: Adapter) -> None:
    """Here the number is a page's, as digits."""
    pages = [Passage(f"n{n}", f"Part {n}.", {"file": "f", "page": str(n)}) for n in range(4)]
    keys = ChunkKeys(document="file", number="page")
    step = adapter.step_over(pages, expand=WINDOW, chunk_keys=keys)
    (hit,) = expand(adapter, step, pages[3:], 0.5)
    assert hit.why["chunks"] == ["n2", "n3"]
    retriever = adapter.build(pages, k=1, alpha=0.0, expand=WINDOW, chunk_keys=keys)
    assert chunks_of(adapter.ask(retriever, "1")) == [["n0", "n1", "n2"]]
