"""Nodes placed by a local model's attention, and its two rounds, on the two readers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.instrumentation.events.synthesis import (
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from llamaindex_posrag.attention import AttentionPlacementPostprocessor, TwoRoundQueryEngine
from shared_core.attention import Case, TwoRound
from shared_core.placement.scored import ATTENTION_PLACEMENTS
from tests.adapters.test_attention import CURVE, FOLDER, asked, reader

from .checks import BrokenNode, check_same_nodes, check_scores, facts, ids
from .contract import PostprocessorContract
from .doubles import Given, traced


def given(k: int = 6) -> tuple[QueryBundle, list[NodeWithScore]]:
    """A query and nodes, some of whose metadata the model reads, the gold one in the middle."""
    nodes = [
        TextNode(
            id_=f"n{at}",
            text=text,
            metadata={"page": at, "secret": "?"},
            excluded_llm_metadata_keys=["secret"],
        )
        for at, text in enumerate(asked(k).documents)
    ]
    hits = [NodeWithScore(node=node, score=1 / (1 + at)) for at, node in enumerate(nodes)]
    return QueryBundle(asked(k).question), hits


def details(nodes: Sequence[Any]) -> list[dict[str, Any]]:
    return [node.posrag for node in nodes]


# --- the contract ---


class TestOnACurve(PostprocessorContract):
    @pytest.fixture(params=ATTENTION_PLACEMENTS)
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return AttentionPlacementPostprocessor(
            FOLDER / "uniform", placement=request.param, curve=CURVE
        )


# --- the postprocessor ---


def test_a_curve_needs_no_query() -> None:
    """The ranking is the order in which the nodes come; they keep their scores."""
    query, nodes = given()
    post = AttentionPlacementPostprocessor(reader("uniform"), curve=CURVE)
    out = post.postprocess_nodes(nodes)
    assert out == post.postprocess_nodes(nodes, query)
    assert facts(out) == [facts(nodes)[why["rank"]] for why in details(out)]
    with pytest.raises(ValueError, match="give the query, or a curve"):
        AttentionPlacementPostprocessor(reader("uniform")).postprocess_nodes(nodes)


def test_to_dict_holds_the_folder_and_refuses_a_loaded_model() -> None:
    """Rather than leave it out, for it could not be read back."""
    post = AttentionPlacementPostprocessor("some/model", curve=CURVE)
    same = AttentionPlacementPostprocessor.from_dict(json.loads(post.to_json()))
    assert same.to_dict() == post.to_dict()
    assert post.to_dict()["model"] == "some/model"
    with pytest.raises(ValueError, match="give its folder or hub name"):
        AttentionPlacementPostprocessor(reader("biased")).to_dict()


# --- the query engine ---


async def test_the_model_reads_what_llamaindex_shows_it() -> None:
    """Texts with the metadata that are not excluded; awaited, the retriever is awaited too."""
    query, nodes = given()
    retriever = Given(nodes)
    engine = TwoRoundQueryEngine(retriever, reader("biased"))
    texts = [node.node.get_content(MetadataMode.LLM) for node in nodes]
    assert "page" in texts[0]
    assert "secret" not in texts[0]
    [expected] = TwoRound().run(reader("biased"), [Case(question=query.query_str, documents=texts)])
    before = [node.model_dump_json() for node in nodes]
    for found in (engine.query(query), await engine.aquery(query.query_str)):
        assert found.response == expected.answer
        assert found.metadata["scores"] == [*expected.scores]
        assert json.dumps(found.metadata)
        assert facts(found.source_nodes) == [facts(nodes)[at] for at in expected.order]
        check_same_nodes(found.source_nodes, [node.node for node in nodes])
        check_scores(found.source_nodes)
    assert retriever.asked == ["sync", "async"]
    assert [node.model_dump_json() for node in nodes] == before


@pytest.mark.parametrize("case", ["sync", "async", "error"])
def test_events_and_spans_are_balanced(case: str) -> None:
    """Of the query and of the synthesis."""
    query, nodes = given()
    if case == "error":
        nodes.append(NodeWithScore(node=BrokenNode(id_="broken")))
    engine = TwoRoundQueryEngine(Given(nodes), reader("biased"))
    with traced() as trace:
        if case == "sync":
            engine.query(query)
        elif case == "async":
            asyncio.run(engine.aquery(query))
        else:
            with pytest.raises(RuntimeError, match="unreadable"):
                engine.query(query)
    ended = int(case != "error")  # as in LlamaIndex's own engines, no end where one raises
    for start, end in (
        (QueryStartEvent, QueryEndEvent),
        (SynthesizeStartEvent, SynthesizeEndEvent),
    ):
        assert len(trace.of(start)) == 1
        assert len(trace.of(end)) == ended
    assert not trace.spans.open_spans


def test_the_engine_leaves_out_the_wrapping_of_a_tool() -> None:
    """An index node may lead to it, behind a retriever that is one."""
    query, nodes = given()
    engine = TwoRoundQueryEngine(Given(nodes), reader("biased"), estimator="icr")
    expected = engine.query(query)
    for text in (f"\ninput is {query.query_str}\n", f"{query.query_str}\n\n"):
        assert engine.query(text) == expected


async def test_given_nodes_are_synthesised_too() -> None:
    """As routers and sub-question engines do; additional nodes are only passed on."""
    query, nodes = given()
    extra = NodeWithScore(node=TextNode(id_="extra", text="more"))
    engine = TwoRoundQueryEngine(Given(nodes), reader("biased"))
    response = engine.synthesize(query, nodes, [extra])
    assert await engine.asynthesize(query, nodes, [extra]) == response
    assert ids(response.source_nodes) == [*ids(engine.query(query).source_nodes), "extra"]
    assert engine.get_prompts() == {}
