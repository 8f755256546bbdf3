"""What a LlamaIndex postprocessor has to keep to, as tests to inherit.

Subclass, name the fixture, and every rule runs on MockLLM-like stand-ins, without a network::

    class TestMine(PostprocessorContract):
        @pytest.fixture
        def postprocessor(self) -> BaseNodePostprocessor:
            return Mine()
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import numpy as np
import pytest
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import RetrieverTool

from .checks import BrokenNode, check_same_nodes, check_scores, facts, ids
from .doubles import QUERY, Given, corpus, scored, traced


class PostprocessorContract:
    """Rules for a `BaseNodePostprocessor`."""

    @pytest.fixture
    def postprocessor(self) -> BaseNodePostprocessor:
        """Return the postprocessor under test."""
        raise NotImplementedError

    def test_the_query_may_be_absent_or_blank(self, postprocessor: BaseNodePostprocessor) -> None:
        for query in (None, QueryBundle(""), QueryBundle(" \n")):
            out = postprocessor.postprocess_nodes(scored(), query)
            check_same_nodes(out, corpus())
            check_scores(out)

    @pytest.mark.parametrize("case", ["nodes", "empty", "no_query", "error", "async"])
    def test_events_are_balanced(self, postprocessor: BaseNodePostprocessor, case: str) -> None:
        query: QueryBundle | None = None if case == "no_query" else QueryBundle(QUERY)
        given = [] if case == "empty" else scored()
        if case == "error":
            given.append(NodeWithScore(node=BrokenNode(id_="broken"), score=0.5))
        out: list[NodeWithScore] = []
        with traced() as trace:
            try:
                if case == "async":
                    out = asyncio.run(postprocessor.apostprocess_nodes(given, query))
                else:
                    out = postprocessor.postprocess_nodes(given, query)
            except RuntimeError:
                assert case == "error"
        starts, ends = trace.of(ReRankStartEvent), trace.of(ReRankEndEvent)
        assert len(starts) == len(ends) == 1, "start and end events differ"
        assert not trace.spans.open_spans, "a span was left open"
        assert ids(starts[0].nodes) == ids(given)
        assert ids(ends[0].nodes) == ids(out)
        assert trace.events.index(starts[0]) < trace.events.index(ends[0])

    def test_ids_hashes_and_texts_are_kept(self, postprocessor: BaseNodePostprocessor) -> None:
        given = scored(count=12)
        given[0].score = np.float32(1)  # type: ignore[assignment]
        out = postprocessor.postprocess_nodes(given, QueryBundle(QUERY))
        assert out
        check_same_nodes(out, corpus())
        check_scores(out)

    def test_the_wrapping_of_a_tool_is_no_part_of_the_query(
        self, postprocessor: BaseNodePostprocessor
    ) -> None:
        tool = RetrieverTool.from_defaults(Given(scored()), node_postprocessors=[postprocessor])
        expected = postprocessor.postprocess_nodes(scored(), QueryBundle(QUERY))
        wrapped = [tool.call(input=QUERY), asyncio.run(tool.acall(input=QUERY)), tool.call(QUERY)]
        for out in wrapped:
            assert out.raw_output == expected, "the words of the tool played a part"

    def test_copies_do_the_same(self, postprocessor: BaseNodePostprocessor) -> None:
        expected = facts(postprocessor.postprocess_nodes(scored(), QueryBundle(QUERY)))
        for copied in (
            copy.deepcopy(postprocessor),
            pickle.loads(pickle.dumps(postprocessor)),
            type(postprocessor).from_dict(json.loads(postprocessor.to_json())),
        ):
            assert facts(copied.postprocess_nodes(scored(), QueryBundle(QUERY))) == expected
