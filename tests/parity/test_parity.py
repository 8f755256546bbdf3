"""The same order, scores and explanations from the core, LangChain and LlamaIndex."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

import langchain_posrag as on_langchain
import llamaindex_posrag as on_llamaindex
from shared_core import CAUS, PLACEMENTS, Arrangement, BM25Index, HybridIndex, PositionProfile
from shared_core.placement import Shuffle, UShape
from shared_core.types import Query

from .both_sides import LangChainEmbedding, LlamaIndexEmbedding, corpus, embed

PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.5, 0.4, 0.6, 0.8), distraction=(0.3, 0.1, 0.2, 0.5, 0.4)
)
CORPUS = corpus()
QUERIES = (
    "convolution with stride",
    "softmax attention attention head",
    "learning rate of the optimizer",
    "nothing known here",
    "padding",
)
SCORES = [0.9, 0.2, 0.7, 0.7, -0.4, 0.1, 0.9, 0.3, 0.0, 0.5, 0.6, 0.8]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def index() -> HybridIndex:
    index = HybridIndex()
    index.add(CORPUS.passages, CORPUS.vectors)
    return index


def langchain_retriever(**options: Any) -> on_langchain.CAUSRetriever:
    return on_langchain.CAUSRetriever.from_documents(
        CORPUS.documents, LangChainEmbedding(), **options
    )


def llamaindex_retriever(**options: Any) -> on_llamaindex.CAUSRetriever:
    return on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), **options)


def document_ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def node_ids(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.node_id for node in nodes]


def assert_all_the_same(
    core: Arrangement, documents: list[Document], nodes: list[NodeWithScore], ids: list[str]
) -> None:
    """Ids, scores and explanations, slot by slot and bit for bit."""
    assert document_ids(documents) == node_ids(nodes) == ids
    assert [document.metadata["score"] for document in documents] == core.scores
    assert [node.score for node in nodes] == core.scores
    assert [document.metadata["posrag"] for document in documents] == core.explain()
    assert [node.posrag for node in nodes] == core.explain()  # type: ignore[attr-defined]


@pytest.mark.parametrize("k", range(13))
@pytest.mark.parametrize("name", PLACEMENTS)
def test_placements_give_the_cores_order(name: str, k: int) -> None:
    """Every placement, every k from 0: the transformer and the postprocessor, sync and in pipes."""
    expected = [f"p{rank}" for rank in PLACEMENTS[name]()(k, PROFILE)]
    transformer = on_langchain.PlacementTransformer(name, psi=PROFILE)
    postprocessor = on_llamaindex.PlacementPostprocessor(name, psi=PROFILE)
    documents = CORPUS.documents[:k]
    nodes = [NodeWithScore(node=node, score=None) for node in CORPUS.nodes[:k]]
    assert document_ids(transformer.invoke(documents)) == expected
    assert document_ids([*transformer.transform_documents(documents)]) == expected
    assert document_ids([*transformer.compress_documents(documents, "query")]) == expected
    assert node_ids(postprocessor.postprocess_nodes(nodes)) == expected


@pytest.mark.parametrize("placement", [UShape(best_at="end"), Shuffle(5)], ids=repr)
@pytest.mark.parametrize("k", range(13))
def test_placements_with_options_give_the_cores_order(placement: UShape | Shuffle, k: int) -> None:
    """A placement itself serves as well as its name."""
    expected = [f"p{rank}" for rank in placement(k)]
    documents = on_langchain.PlacementTransformer(placement).invoke(CORPUS.documents[:k])
    nodes = on_llamaindex.PlacementPostprocessor(placement).postprocess_nodes(
        [NodeWithScore(node=node, score=0.5) for node in CORPUS.nodes[:k]]
    )
    assert document_ids(documents) == node_ids(nodes) == expected


@pytest.mark.parametrize("k", [1, 2, 5, 12])
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("first", ["u_shape", "inverse"])
def test_what_is_placed_twice_stands_as_placed_once(first: str, name: str, k: int) -> None:
    """The ranking is what the first placement placed, not the slots it placed it in."""
    once: dict[str, Any] = {"k": k, "placement": name, "psi": PROFILE}
    before: dict[str, Any] = {"k": k, "placement": first, "psi": PROFILE}
    documents = on_langchain.PlacementTransformer(name, psi=PROFILE).invoke(
        langchain_retriever(**before).invoke(QUERIES[0])
    )
    nodes = on_llamaindex.PlacementPostprocessor(name, psi=PROFILE).postprocess_nodes(
        llamaindex_retriever(**before).retrieve(QUERIES[0])
    )
    expected = langchain_retriever(**once).invoke(QUERIES[0])
    assert document_ids(documents) == node_ids(nodes) == document_ids(expected)
    assert [d.metadata["posrag"] for d in documents] == [d.metadata["posrag"] for d in expected]


def test_what_was_ranked_anew_since_is_placed_as_it_comes() -> None:
    """By a reranker, say, that may have kept only a few."""
    placed = langchain_retriever(k=6, psi="always").invoke(QUERIES[0])
    place = on_langchain.PlacementTransformer("u_shape").invoke
    for given in (placed[::-1], placed[:3], placed[2:5], [*placed[3:], *placed[:3]]):
        expected = [document_ids(given)[rank] for rank in PLACEMENTS["u_shape"]()(len(given), None)]
        assert document_ids(place(given)) == expected


@pytest.mark.parametrize("first", ["u_shape", "inverse"])
@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_nodes_with_other_scores_are_placed_as_they_come(first: str, k: int) -> None:
    """In whichever order a reranker brings them, also in that of their slots; and once more."""
    for order in permutations(range(k)) if k < 4 else [range(k)]:
        nodes = llamaindex_retriever(k=k, psi="always", placement=first).retrieve(QUERIES[0])
        reranked = [nodes[at] for at in order]
        for rank, node in enumerate(reranked):
            node.score = 1.0 - rank / 10
        expected = [reranked[rank].node_id for rank in PLACEMENTS["inverse"]()(k, None)]
        place = on_llamaindex.PlacementPostprocessor("inverse").postprocess_nodes
        once = place(reranked)
        assert node_ids(once) == node_ids(place(once)) == expected


@pytest.mark.parametrize("dropped", range(6))
def test_what_a_filter_left_of_a_placement_is_placed_by_the_ranks_it_had(dropped: int) -> None:
    """Or the second best, which stands last, would go to the middle."""
    ranking = langchain_retriever(k=6, psi="never").invoke(QUERIES[0])
    left = [id for rank, id in enumerate(document_ids(ranking)) if rank != dropped]
    expected = [left[rank] for rank in PLACEMENTS["u_shape"]()(5, None)]
    documents = langchain_retriever(k=6, psi="always").invoke(QUERIES[0])
    nodes = llamaindex_retriever(k=6, psi="always").retrieve(QUERIES[0])
    assert expected == document_ids(
        on_langchain.PlacementTransformer("u_shape").invoke([d for d in documents if d.id in left])
    )
    assert expected == node_ids(
        on_llamaindex.PlacementPostprocessor("u_shape").postprocess_nodes(
            [node for node in nodes if node.node_id in left]
        )
    )


@pytest.mark.parametrize("psi", ["always", "never", None, 0.8, 1.0, 1.2, PROFILE])
@pytest.mark.parametrize("evidence", ["point", "interval"])
def test_the_gate_is_the_same_on_both_sides(psi: Any, evidence: Any) -> None:
    """Decision, number and reason."""
    core = CAUS(psi=psi, evidence=evidence)
    documents = on_langchain.PlacementTransformer("u_shape", psi=psi, evidence=evidence).invoke(
        CORPUS.documents[:5]
    )
    nodes = on_llamaindex.PlacementPostprocessor(
        "u_shape", psi=psi, evidence=evidence
    ).postprocess_nodes([NodeWithScore(node=node, score=0.5) for node in CORPUS.nodes[:5]])
    expected = {**core.gate.explain(), "placement": core.placement_in_force.name}
    for slot, why in enumerate(document.metadata["posrag"] for document in documents):
        assert why == nodes[slot].posrag  # type: ignore[attr-defined]
        assert expected.items() <= why.items()
        assert why["slot"] == slot


def test_filters_mean_the_same(index: HybridIndex) -> None:
    """Equal, and any of: each side in its own form."""
    any_of = MetadataFilter(key="number", value=[3, 14, 15], operator=FilterOperator.IN)
    cases = [
        ({"lang": "de"}, MetadataFilters.from_dict({"lang": "de"})),
        ({"number": [3, 14, 15]}, MetadataFilters(filters=[any_of])),
        ({"lang": "en", "number": 4}, MetadataFilters.from_dict({"lang": "en", "number": 4})),
        ({"lang": "fr"}, MetadataFilters.from_dict({"lang": "fr"})),
    ]
    for where, filters in cases:
        for query in QUERIES:
            (core,) = CAUS().search(index, [Query(query, embed(query))], where=where)
            assert_all_the_same(
                core,
                langchain_retriever().invoke(query, filter=where),
                llamaindex_retriever(filters=filters).retrieve(query),
                [passage.id for passage in core.passages],
            )


@pytest.mark.parametrize("n", range(13))
@pytest.mark.parametrize("name", PLACEMENTS)
def test_rescoring_gives_the_cores_order(name: str, n: int) -> None:
    """The compressor and the postprocessor over n candidates, from none on: what CAUS makes."""
    options: dict[str, Any] = {"k": 8, "placement": name, "psi": PROFILE}
    documents, nodes = CORPUS.scored(SCORES[:n])
    texts = [passage.text for passage in CORPUS.passages[:n]]
    caus = CAUS(**options)
    for query in QUERIES:
        core = caus.place(caus.rank(SCORES[:n], BM25Index.from_texts(texts).scores(query)))
        compressed = on_langchain.HybridScoreCompressor(**options).compress_documents(
            documents, query
        )
        processed = on_llamaindex.CAUSPostprocessor(**options).postprocess_nodes(
            nodes, QueryBundle(query)
        )
        ids = [f"p{number}" for number in core.indices]
        assert_all_the_same(core, [*compressed], processed, ids)


@pytest.mark.parametrize("missing", [None, math.nan])
def test_rescoring_treats_missing_scores_alike(missing: float | None) -> None:
    """A candidate without a score stands at the floor of the others."""
    scores = [missing if at in (0, 5) else score for at, score in enumerate(SCORES)]
    documents, nodes = CORPUS.scored(scores)
    texts = [passage.text for passage in CORPUS.passages[: len(scores)]]
    dense = [math.nan if score is None else score for score in scores]
    caus = CAUS(psi="always", k=12, alpha=0.6)
    core = caus.place(caus.rank(dense, BM25Index.from_texts(texts).scores(QUERIES[0])))
    assert_all_the_same(
        core,
        [
            *on_langchain.HybridScoreCompressor(psi="always", k=12, alpha=0.6).compress_documents(
                documents, QUERIES[0]
            )
        ],
        on_llamaindex.CAUSPostprocessor(psi="always", k=12, alpha=0.6).postprocess_nodes(
            nodes, QueryBundle(QUERIES[0])
        ),
        [f"p{number}" for number in core.indices],
    )


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
def test_rescoring_takes_either_direction(higher_is_better: bool, fusion: Any) -> None:
    """Distances on both sides: the core gets them negated."""
    documents, nodes = CORPUS.scored(SCORES)
    texts = [passage.text for passage in CORPUS.passages[: len(SCORES)]]
    options: dict[str, Any] = {"psi": "always", "k": 5, "fusion": fusion, "alpha": "auto"}
    caus = CAUS(**options)
    dense = SCORES if higher_is_better else [-score for score in SCORES]
    core = caus.place(caus.rank(dense, BM25Index.from_texts(texts).scores(QUERIES[0])))
    direction = {"higher_is_better": higher_is_better}
    compressor = on_langchain.HybridScoreCompressor(**options, **direction)
    postprocessor = on_llamaindex.CAUSPostprocessor(**options, **direction)
    assert_all_the_same(
        core,
        [*compressor.compress_documents(documents, QUERIES[0])],
        postprocessor.postprocess_nodes(nodes, QueryBundle(QUERIES[0])),
        [f"p{number}" for number in core.indices],
    )


def test_rescoring_with_a_corpus_uses_its_statistics() -> None:
    """The same order, and scores equal to rounding: one side scores rows, the other texts."""
    documents, nodes = CORPUS.scored(SCORES)
    for query in QUERIES:
        compressor = on_langchain.HybridScoreCompressor.from_documents(
            CORPUS.documents, psi="always", k=7
        )
        postprocessor = on_llamaindex.CAUSPostprocessor.from_nodes(CORPUS.nodes, psi="always", k=7)
        caus = CAUS(psi="always", k=7)
        bm25 = BM25Index.from_texts(passage.text for passage in CORPUS.passages)
        sparse = bm25.scores(query)[: len(SCORES)]
        core = caus.place(caus.rank(SCORES, sparse))
        compressed = [*compressor.compress_documents(documents, query)]
        processed = postprocessor.postprocess_nodes(nodes, QueryBundle(query))
        ids = [f"p{number}" for number in core.indices]
        assert document_ids(compressed) == node_ids(processed) == ids
        scores = [document.metadata["score"] for document in compressed]
        assert scores == pytest.approx(core.scores, abs=1e-9)
        assert [node.score for node in processed] == pytest.approx(core.scores, abs=1e-9)


def test_retrievers_over_the_frameworks_own_stores_agree() -> None:
    """InMemoryVectorStore and SimpleVectorStore both score cosines; deep enough, that is exact."""
    store = InMemoryVectorStore(LangChainEmbedding())
    store.add_documents(CORPUS.documents)
    one = on_langchain.CAUSRetriever.from_vectorstore(
        store, CORPUS.documents, k=8, fetch_k=60, psi="always"
    )
    other = on_llamaindex.CAUSRetriever.from_index(
        VectorStoreIndex(CORPUS.nodes, embed_model=LlamaIndexEmbedding()),
        higher_is_better=True,
        k=8,
        fetch_k=60,
        psi="always",
    )
    for query in QUERIES:
        documents, nodes = one.invoke(query), other.retrieve(query)
        scores = [document.metadata["score"] for document in documents]
        assert scores == pytest.approx([node.score for node in nodes], abs=1e-6)
        assert [document.metadata["posrag"]["rank"] for document in documents] == [
            node.posrag["rank"]  # type: ignore[attr-defined]
            for node in nodes
        ]


class Borrowed(VectorStore):
    """A store of LangChain's that finds what an index of LlamaIndex's finds, ties and all."""

    def __init__(self, index: VectorStoreIndex) -> None:
        self.index = index

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> Borrowed:
        raise NotImplementedError

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        raise NotImplementedError

    def similarity_search_with_score(self, query: str, k: int) -> list[tuple[Document, float]]:  # type: ignore[override]
        by_id = {document.id: document for document in CORPUS.documents}
        nodes = self.index.as_retriever(similarity_top_k=k).retrieve(query)
        return [(by_id[node.node.node_id], node.score or 0.0) for node in nodes]


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("fetch_k", [1, 9, 60])
def test_retrievers_over_the_same_hits_agree(fetch_k: int, fusion: Any) -> None:
    """Equal scores keep the order of the hits, with what only BM25 finds behind them."""
    index = VectorStoreIndex(CORPUS.nodes, embed_model=LlamaIndexEmbedding())
    options: dict[str, Any] = {"k": 9, "fetch_k": fetch_k, "fusion": fusion}
    one = on_langchain.CAUSRetriever.from_vectorstore(
        Borrowed(index), CORPUS.documents, higher_is_better=True, **options
    )
    other = on_llamaindex.CAUSRetriever.from_index(index, higher_is_better=True, **options)
    for query in QUERIES:
        documents, nodes = one.invoke(query), other.retrieve(query)
        assert document_ids(documents) == node_ids(nodes)
        assert [document.metadata["posrag"] for document in documents] == [
            node.posrag  # type: ignore[attr-defined]
            for node in nodes
        ]


@pytest.mark.parametrize(
    "options",
    [
        {"k": 0},
        {"k": -1},
        {"alpha": 1.5},
        {"alpha": "best"},
        {"fetch_k": 0},
        {"placement": "v_shape"},
        {"fusion": "sum"},
        {"psi": -1.0},
        {"evidence": "strong"},
        {"psi": "always", "placement": "max_relevance"},
    ],
    ids=repr,
)
def test_bad_options_are_refused_on_both_sides(options: dict[str, Any]) -> None:
    """A ValueError that shows the value, as in the core."""
    shown = str([*options.values()][-1])
    for make in (CAUS, langchain_retriever, llamaindex_retriever):
        with pytest.raises(ValueError, match=shown):
            make(**options)
