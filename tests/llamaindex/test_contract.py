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


class TestEach(PostprocessorContract):
    @pytest.fixture(
        params=[
            CAUSPostprocessor(psi=1.3, k=3, alpha=0.7),
            CAUSPostprocessor(psi="always", placement=UShapeBestLast(), fusion="rrf"),
            CAUSPostprocessor(psi="always", fusion="min_max", variant="okapi"),
            *(PlacementPostprocessor("u_shape", psi=psi) for psi in (None, "always", "never")),
            # nodes without a position come back as they are, and the rules hold for them
            NeighbourSpanPostprocessor(NeighbourSpans(order=UShapeBestLast())),
        ],
        ids=lambda each: str(type(each).__name__),
    )
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        made: BaseNodePostprocessor = request.param
        return made
