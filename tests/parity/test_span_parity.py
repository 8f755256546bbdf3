"""The same spans, texts, order and scores from the core, LangChain and LlamaIndex."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters

import langchain_posrag as on_langchain
import llamaindex_posrag as on_llamaindex
from shared_core import CAUS, HybridIndex, Passage, PositionProfile
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.neighbour_spans.expanded import ExpandedArrangement
from shared_core.placement import UShape
from shared_core.types import Query

from .both_sides import TOPICS, Corpus, LangChainEmbedding, LlamaIndexEmbedding, embed

PROFILE = PositionProfile(model="m", accuracy=(0.9, 0.5, 0.4, 0.6, 0.8))
QUERIES = ("convolution with stride", "softmax attention head", "learning rate", "unknown words")
SIZE, OVERLAP = 90, 25

EXPANSIONS = [
    NeighbourSpans(window=1, token_budget=None),
    NeighbourSpans(window=2, token_budget=150),
    NeighbourSpans(window="auto", token_budget=400),
    NeighbourSpans(window=2, token_budget=None, min_continuity=None, weights=(1, 0, 0, 0)),
    NeighbourSpans(window=3, count_tokens=lambda text: len(text.split())),
]


def document(name: str, seed: int) -> str:
    rng = np.random.default_rng(seed)
    words = [word for topic in rng.permutation(TOPICS) for word in topic.split()]
    return " ".join(f"{rng.choice(words)}{'.' if at % 7 == 6 else ''}" for at in range(120))


def chunked() -> list[Passage]:
    """Return overlapping chunks of five documents with number, start, heading and language."""
    passages = []
    for seed, name in enumerate("abcde"):
        text = document(name, seed)
        for number, start in enumerate(range(0, len(text) - OVERLAP, SIZE - OVERLAP)):
            metadata = {
                "doc_id": name,
                "chunk_id": number,
                "start_index": start,
                "heading": f"part {number // 4}",
                "lang": "en" if seed % 2 else "de",
            }
            passages.append(Passage(f"{name}{number}", text[start : start + SIZE], metadata))
    return passages


CORPUS = Corpus(chunked())


def nodes(*, linked: bool) -> list[TextNode]:
    """Return the chunks as nodes with offsets; placed by links, or by number."""
    made = CORPUS.nodes
    known = {node.node_id for node in made}
    for node in made:
        name, number, start = (node.metadata[key] for key in ("doc_id", "chunk_id", "start_index"))
        node.start_char_idx, node.end_char_idx = start, start + len(node.text)
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=name)
        for step, side in ((-1, NodeRelationship.PREVIOUS), (1, NodeRelationship.NEXT)):
            other = f"{name}{number + step}"
            if linked and other in known:
                node.relationships[side] = RelatedNodeInfo(node_id=other)
    return made


def langchain_retriever(**options: Any) -> on_langchain.CAUSRetriever:
    return on_langchain.CAUSRetriever.from_documents(
        CORPUS.documents, LangChainEmbedding(), **options
    )


def llamaindex_retriever(*, linked: bool = True, **options: Any) -> on_llamaindex.CAUSRetriever:
    return on_llamaindex.CAUSRetriever.from_nodes(
        nodes(linked=linked), LlamaIndexEmbedding(), **options
    )


def assert_same_spans(
    documents: list[Document], found: list[NodeWithScore], core: ExpandedArrangement | None = None
) -> None:
    """Ids, texts, scores and explanations, slot by slot and bit for bit."""
    assert [each.id for each in documents] == [each.node.node_id for each in found]
    assert [each.page_content for each in documents] == [each.node.get_content() for each in found]
    assert [each.metadata["score"] for each in documents] == [each.score for each in found]
    assert [each.metadata["posrag"] for each in documents] == [
        each.posrag  # type: ignore[attr-defined]
        for each in found
    ]
    if core is not None:
        assert [each.metadata["posrag"] for each in documents] == core.explain()
        assert [each.page_content for each in documents] == [span.text for span in core.spans]


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("spans", EXPANSIONS, ids=lambda spans: f"window={spans.window}")
async def test_retrievers_give_the_cores_spans(spans: NeighbourSpans, linked: bool) -> None:
    """Whether the nodes tell their neighbours by links or by number; in every way to call."""
    index = HybridIndex()
    index.add(CORPUS.passages, CORPUS.vectors)
    options: dict[str, Any] = {"k": 6, "psi": PROFILE, "expand": spans}
    one, other = langchain_retriever(**options), llamaindex_retriever(linked=linked, **options)
    batches = one.batch([*QUERIES]), other.retrieve_batch(QUERIES)
    merged = 0
    for query, documents, found in zip(QUERIES, *batches, strict=True):
        (core,) = CAUS(**options).search(index, [Query(query, embed(query))])
        assert isinstance(core, ExpandedArrangement)
        merged += sum(len(span.chunks) > 1 for span in core.spans)
        assert_same_spans(documents, found, core)
        assert_same_spans(one.invoke(query), other.retrieve(query), core)
        assert_same_spans(await one.ainvoke(query), await other.aretrieve(query), core)
    assert merged


def test_filters_keep_the_same_neighbours_out() -> None:
    """Each side in its own form."""
    spans = EXPANSIONS[0]
    german = MetadataFilters.from_dict({"lang": "de"})
    one, other = langchain_retriever(expand=spans), llamaindex_retriever(expand=spans)
    only = llamaindex_retriever(expand=spans, filters=german)
    for query in QUERIES:
        documents = one.invoke(query, filter={"lang": "de"})
        assert_same_spans(documents, only.retrieve(query))
        assert documents != one.invoke(query)
        assert_same_spans(one.invoke(query), other.retrieve(query))


def test_spans_stay_the_same_through_changes() -> None:
    """Deleting and replacing on both sides.

    Not the first and last chunks: links tell that one is gone there, numbers do not.
    """
    options: dict[str, Any] = {"k": 8, "expand": EXPANSIONS[0]}
    one, other = langchain_retriever(**options), llamaindex_retriever(**options)
    one.invoke(QUERIES[0])
    other.retrieve(QUERIES[0])
    gone = [f"{name}{number}" for name in "abcde" for number in (2, 3, 7)]
    one.delete(gone)
    other.delete_nodes(gone)
    for query in QUERIES:
        assert_same_spans(one.invoke(query), other.retrieve(query))
    one.add_documents(CORPUS.documents[:10])
    other.add_nodes(nodes(linked=True)[:10])
    for query in QUERIES:
        assert_same_spans(one.invoke(query), other.retrieve(query))


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("spans", EXPANSIONS, ids=lambda spans: f"window={spans.window}")
def test_transformer_and_postprocessor_give_the_same(spans: NeighbourSpans, embedded: bool) -> None:
    """With and without embeddings; scores of the candidates, tied and negative ones too."""
    transformer = on_langchain.NeighbourSpanTransformer.from_documents(
        CORPUS.documents, embeddings=LangChainEmbedding() if embedded else None, expand=spans
    )
    postprocessor = on_llamaindex.NeighbourSpanPostprocessor.from_nodes(
        nodes(linked=True), spans, embed_model=LlamaIndexEmbedding() if embedded else None
    )
    rng = np.random.default_rng(5)
    for scores in ([0.9, 0.8, 0.8, -0.1, 0.3], [None] * 5, [0.5, None, 0.2, None, 0.5]):
        rows = [int(row) for row in rng.choice(len(CORPUS.passages), 5, replace=False)]
        documents = [CORPUS.documents[row] for row in rows]
        candidates = [NodeWithScore(node=nodes(linked=True)[row]) for row in rows]
        for given, candidate, score in zip(documents, candidates, scores, strict=True):
            candidate.score = score
            if score is not None:
                given.metadata["score"] = score
        assert_same_spans(
            transformer.invoke(documents), postprocessor.postprocess_nodes(candidates)
        )


@pytest.mark.parametrize(
    "order", ["back_first", "edge_balanced", "score_descending", UShape(best_at="end")]
)
def test_a_span_says_where_it_stands_now(order: str | UShape) -> None:
    """Not where the retriever had put its seed, nor why."""
    spans = NeighbourSpans(window=0, token_budget=None, order=order)
    one = langchain_retriever(k=6, psi=PROFILE)
    other = llamaindex_retriever(linked=False, k=6, psi=PROFILE)
    transformer = on_langchain.NeighbourSpanTransformer(expand=spans)
    postprocessor = on_llamaindex.NeighbourSpanPostprocessor(spans)
    documents = transformer.invoke(one.invoke(QUERIES[0]))
    assert_same_spans(documents, postprocessor.postprocess_nodes(other.retrieve(QUERIES[0])))
    details = [document.metadata["posrag"] for document in documents]
    name = order if isinstance(order, str) else order.name
    assert [why["slot"] for why in details] == [*range(len(details))]
    assert {why["placement"] for why in details} == {name}
    by_rank = sorted(details, key=lambda why: -why["score"])
    assert [why["rank"] for why in by_rank] == [*range(len(details))]
    assert not {"psi", "gate", "reason"} & {key for why in details for key in why}
    assert all("dense_rank" in why for why in details)


def test_retrievers_over_a_vector_store_give_the_same() -> None:
    """Neighbours among the documents of the sparse leg, without embeddings."""
    spans = replace(EXPANSIONS[0], min_continuity=None)
    store = InMemoryVectorStore.from_documents(CORPUS.documents, LangChainEmbedding())
    one = on_langchain.CAUSRetriever.from_vectorstore(store, CORPUS.documents, k=5, expand=spans)
    index = VectorStoreIndex(nodes(linked=True), embed_model=LlamaIndexEmbedding())
    other = on_llamaindex.CAUSRetriever.from_index(index, higher_is_better=True, k=5, expand=spans)
    for query in QUERIES:
        documents, found = one.invoke(query), other.retrieve(query)
        assert [each.id for each in documents] == [each.node.node_id for each in found]
        assert [each.page_content for each in documents] == [n.get_content() for n in found]
        assert [each.metadata["score"] for each in documents] == pytest.approx(
            [each.score for each in found]
        )
