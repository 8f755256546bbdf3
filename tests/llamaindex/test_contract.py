"""The adapter keeps the contract, and the contract can be broken."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import (
    LongContextReorder,
    MetadataReplacementPostProcessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore import SimpleDocumentStore

from llamaindex_posrag import (
    CAUSPostprocessor,
    CAUSRetriever,
    NeighbourSpanPostprocessor,
    PlacementPostprocessor,
)
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.placement import UShape

from .contract import PostprocessorContract, RetrieverContract
from .doubles import WordEmbedding, corpus

pytestmark = pytest.mark.filterwarnings("ignore:no passage says which chunk")


class TestCAUSPostprocessor(PostprocessorContract):
    @pytest.fixture(params=["plain", "always", "number", "best_at_end", "rrf", "auto"])
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        options: dict[str, dict[str, Any]] = {
            "plain": {},
            "always": {"psi": "always", "k": 3},
            "number": {"psi": 1.3, "alpha": 0.7},
            "best_at_end": {"psi": "always", "placement": UShape(best_at="end")},
            "rrf": {"psi": "always", "fusion": "rrf"},
            "auto": {"psi": "always", "alpha": "auto", "variant": "okapi"},
        }
        return CAUSPostprocessor(**options[request.param])


class TestCAUSPostprocessorFromNodes(PostprocessorContract):
    round_trips: ClassVar[bool] = False  # to_dict holds options, not a corpus

    @pytest.fixture
    def postprocessor(self) -> BaseNodePostprocessor:
        return CAUSPostprocessor.from_nodes(corpus()[::2], psi="always")


class TestPlacementPostprocessor(PostprocessorContract):
    @pytest.fixture(params=[None, "always", "never"])
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return PlacementPostprocessor("u_shape", psi=request.param)


class TestNeighbourSpanPostprocessor(PostprocessorContract):
    """Nodes without a position come back as they are, and the rules hold for them."""

    @pytest.fixture(params=["default", "auto", "no_budget"])
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        options: dict[str, dict[str, Any]] = {
            "default": {},
            "auto": {"window": "auto", "order": UShape(best_at="end")},
            "no_budget": {"token_budget": None, "min_continuity": None},
        }
        return NeighbourSpanPostprocessor(NeighbourSpans(**options[request.param]))


class TestNeighbourSpanPostprocessorFromDocstore(PostprocessorContract):
    round_trips: ClassVar[bool] = False  # to_dict holds options, not a docstore

    @pytest.fixture
    def postprocessor(self) -> BaseNodePostprocessor:
        docstore = SimpleDocumentStore()
        docstore.add_documents(corpus())
        return NeighbourSpanPostprocessor(docstore=docstore)


class TestNeighbourSpanPostprocessorFromNodes(PostprocessorContract):
    round_trips: ClassVar[bool] = False  # to_dict holds options, not nodes

    @pytest.fixture
    def postprocessor(self) -> BaseNodePostprocessor:
        return NeighbourSpanPostprocessor.from_nodes(corpus(), embed_model=WordEmbedding())


class TestCAUSRetrieverOfSpans(RetrieverContract):
    def build(self, nodes: list[BaseNode]) -> BaseRetriever:
        return CAUSRetriever.from_nodes(
            nodes, WordEmbedding(), k=5, psi="always", expand=NeighbourSpans()
        )


class TestCAUSRetriever(RetrieverContract):
    def build(self, nodes: list[BaseNode]) -> BaseRetriever:
        return CAUSRetriever.from_nodes(nodes, WordEmbedding(), k=5, psi="always")


class TestFusingRetriever(RetrieverContract):
    def build(self, nodes: list[BaseNode]) -> BaseRetriever:
        if not nodes:
            return CAUSRetriever.from_nodes(nodes, WordEmbedding())
        index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
        return CAUSRetriever.from_index(index, higher_is_better=True)


class Mutating(BaseNodePostprocessor):
    """Change the caller's nodes and list, as many a reranker does."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for node in nodes:
            node.node.metadata["retrieval_score"] = node.score
        nodes.reverse()
        return nodes


class Leaking(BaseNodePostprocessor):
    """Put an explanation into the metadata, where it changes hash and prompt."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        copies = [node.model_copy(deep=True) for node in nodes]
        for copied in copies:
            copied.node.metadata["posrag"] = {"slot": 0}
        return copies


class TestTheContractCanBeBroken:
    kit = PostprocessorContract()
    retrievers = RetrieverContract()

    @pytest.mark.parametrize(
        "peer", [Mutating(), MetadataReplacementPostProcessor(target_metadata_key="lang")]
    )
    def test_by_mutation(self, peer: BaseNodePostprocessor) -> None:
        with pytest.raises(AssertionError, match=r"came back|changed|reordered"):
            self.kit.test_nothing_of_the_caller_is_mutated(peer)

    def test_by_metadata_in_the_prompt(self) -> None:
        with pytest.raises(AssertionError, match="changed its hash"):
            self.kit.test_ids_hashes_and_texts_are_kept(Leaking())

    def test_by_silence(self) -> None:
        with pytest.raises(AssertionError, match="start and end events"):
            self.kit.test_events_are_balanced(LongContextReorder(), "nodes")

    def test_by_the_first_node_in_the_middle(self) -> None:
        with pytest.raises(AssertionError, match="in the middle"):
            self.kit.test_without_a_difference_the_first_node_gets_an_edge(
                LongContextReorder(), "none"
            )

    def test_by_merging_nodes_of_equal_text(self) -> None:
        class Fusion(RetrieverContract):
            def build(self, nodes: list[BaseNode]) -> BaseRetriever:
                dense = VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_retriever()
                return QueryFusionRetriever(
                    [dense],
                    llm=MockLLM(),
                    num_queries=1,
                    mode=FUSION_MODES.RECIPROCAL_RANK,
                    use_async=False,
                )

        with pytest.raises(AssertionError):
            Fusion().test_equal_texts_are_different_nodes()
