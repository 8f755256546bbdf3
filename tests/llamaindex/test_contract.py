"""The adapter keeps the contract."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode
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
    @pytest.fixture(params=["plain", "always", "number", "best_at_end", "rrf", "min_max"])
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        options: dict[str, dict[str, Any]] = {
            "plain": {},
            "always": {"psi": "always", "k": 3},
            "number": {"psi": 1.3, "alpha": 0.7},
            "best_at_end": {"psi": "always", "placement": UShape(best_at="end")},
            "rrf": {"psi": "always", "fusion": "rrf"},
            "min_max": {"psi": "always", "fusion": "min_max", "variant": "okapi"},
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
        index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
        return CAUSRetriever.from_index(index, higher_is_better=True)
