"""The adapter keeps the contract."""

from __future__ import annotations

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from llamaindex_posrag import (
    CAUSPostprocessor,
    NeighbourSpanPostprocessor,
    PlacementPostprocessor,
)
from shared_core.neighbour_spans import NeighbourSpans
from shared_core.placement import UShapeBestLast

from .contract import PostprocessorContract

pytestmark = pytest.mark.filterwarnings("ignore:no passage says which chunk")


class TestCAUSPostprocessor(PostprocessorContract):
    @pytest.fixture(
        params=[
            {"psi": 1.3, "k": 3, "alpha": 0.7},
            {"psi": "always", "placement": UShapeBestLast(), "fusion": "rrf"},
            {"psi": "always", "fusion": "min_max", "variant": "okapi"},
        ],
        ids=str,
    )
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return CAUSPostprocessor(**request.param)


class TestPlacementPostprocessor(PostprocessorContract):
    @pytest.fixture(params=[None, "always", "never"])
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return PlacementPostprocessor("u_shape", psi=request.param)


class TestNeighbourSpanPostprocessor(PostprocessorContract):
    """Nodes without a position come back as they are, and the rules hold for them."""

    @pytest.fixture
    def postprocessor(self) -> BaseNodePostprocessor:
        return NeighbourSpanPostprocessor(NeighbourSpans(order=UShapeBestLast()))
