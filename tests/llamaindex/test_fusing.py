"""A vector index of LlamaIndex as the dense leg."""

from __future__ import annotations

import faiss
import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.vector_stores.faiss import FaissVectorStore

from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.fusing import FusingRetriever
from llamaindex_posrag.nodes import ExplainedNode
from shared_core import CAUS

from .checks import facts, ids
from .doubles import QUERY, TEXTS, WordEmbedding, corpus


def indexed() -> VectorStoreIndex:
    return VectorStoreIndex(corpus(), embed_model=WordEmbedding())


class Fixed(BaseRetriever):
    """Return given nodes, whatever is asked."""

    def __init__(self, found: list[NodeWithScore]) -> None:
        self._found = found
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._found


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_with_every_candidate_it_agrees_with_an_index_of_ones_own(alpha: float) -> None:
    caus = CAUS(k=12, alpha=alpha, psi="always")
    ours = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=12, alpha=alpha, psi="always")
    theirs = CAUSRetriever.from_index(indexed(), higher_is_better=True, caus=caus)
    for query in TEXTS:
        assert ids(theirs.retrieve(query)) == ids(ours.retrieve(query))


def test_distances_are_turned_round() -> None:
    store = FaissVectorStore(faiss.IndexFlatL2(64))
    index = VectorStoreIndex(
        corpus(),
        embed_model=WordEmbedding(),
        storage_context=StorageContext.from_defaults(vector_store=store),
    )
    caus = CAUS(k=12, alpha=1.0, fetch_k=12)
    right = CAUSRetriever.from_index(index, higher_is_better=False, caus=caus)
    wrong = CAUSRetriever.from_index(index, higher_is_better=True, caus=caus)
    cosine = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=12, alpha=1.0)
    assert ids(right.retrieve(QUERY)) == ids(cosine.retrieve(QUERY))
    assert ids(wrong.retrieve(QUERY)) != ids(right.retrieve(QUERY))


def test_what_only_bm25_found_stands_at_the_floor_of_the_dense_leg() -> None:
    nodes = corpus()
    dense = Fixed(
        [NodeWithScore(node=nodes[at], score=score) for at, score in ((4, 0.9), (5, 0.2))]
    )
    found = FusingRetriever(dense, nodes, higher_is_better=True).retrieve(QUERY)
    by_id = {hit.node.node_id: hit for hit in found}
    assert {"n0", "n4", "n5"} <= set(by_id)
    only_sparse = by_id["n0"]
    assert isinstance(only_sparse, ExplainedNode)
    assert only_sparse.posrag["dense"] == 0.2
    assert only_sparse.posrag["dense_norm"] == 0.0
    assert only_sparse.posrag["sparse"] > 0


def test_a_dense_hit_that_bm25_does_not_know_is_scored_by_its_text() -> None:
    stranger = TextNode(id_="stranger", text=QUERY)
    dense = Fixed([NodeWithScore(node=stranger, score=0.5)])
    found = FusingRetriever(dense, corpus(), higher_is_better=True).retrieve(QUERY)
    assert found[0].node.node_id == "stranger"


def test_a_dense_leg_without_scores_or_hits_leaves_it_to_bm25() -> None:
    nodes = corpus()
    none = FusingRetriever(Fixed([]), nodes, higher_is_better=True)
    unscored = FusingRetriever(Fixed([NodeWithScore(node=nodes[9])]), nodes, higher_is_better=True)
    assert none.retrieve(QUERY)[0].node.node_id == "n0"
    assert unscored.retrieve(QUERY)[0].node.node_id == "n0"
    assert none.retrieve("zebra") == []


def test_a_missing_score_stands_at_the_floor_of_the_dense_leg() -> None:
    nodes = corpus()
    hits = [NodeWithScore(node=nodes[at], score=s) for at, s in ((4, 0.9), (5, None), (6, -0.5))]
    found = FusingRetriever(Fixed(hits), nodes, higher_is_better=True).retrieve(QUERY)
    unscored = next(hit for hit in found if hit.node.node_id == "n5")
    assert isinstance(unscored, ExplainedNode)
    assert unscored.posrag["dense"] == -0.5


def test_filters_hold_in_both_legs() -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="lang", value="de")])
    retriever = CAUSRetriever.from_index(
        indexed(), higher_is_better=True, caus=CAUS(k=12), filters=filters
    )
    for query in TEXTS:
        found = retriever.retrieve(query)
        assert {hit.node.metadata["lang"] for hit in found} == {"de"}


def test_the_wrapping_of_a_tool_is_not_searched() -> None:
    retriever = CAUSRetriever.from_index(indexed(), higher_is_better=True)
    wrapped = retriever.retrieve(f"\ninput is {QUERY}\n")
    assert facts(wrapped) == facts(retriever.retrieve(QUERY))


def test_a_store_without_a_docstore_needs_the_nodes() -> None:
    empty = VectorStoreIndex([], embed_model=WordEmbedding())
    with pytest.raises(ValueError, match="nodes="):
        CAUSRetriever.from_index(empty, higher_is_better=True)
    given = CAUSRetriever.from_index(indexed(), corpus()[:3], higher_is_better=True)
    assert given.retrieve(QUERY)
