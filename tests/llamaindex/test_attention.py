"""Nodes placed by a local model's attention, and its two rounds, on the two readers."""

from __future__ import annotations

import json

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

from .checks import check_same_nodes, check_scores, facts, ids
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


# --- the contract ---


class TestOnACurve(PostprocessorContract):
    @pytest.fixture(params=ATTENTION_PLACEMENTS)
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return AttentionPlacementPostprocessor(
            FOLDER / "uniform", placement=request.param, curve=CURVE
        )


# --- the postprocessor ---


def test_to_dict_holds_the_folder_and_refuses_a_loaded_model() -> None:
    """Rather than leave it out, for it could not be read back."""
    post = AttentionPlacementPostprocessor("some/model", curve=CURVE)
    same = AttentionPlacementPostprocessor.from_dict(json.loads(post.to_json()))
    assert same.to_dict() == post.to_dict()
    assert post.to_dict()["model"] == "some/model"
    with pytest.raises(ValueError, match="give its folder or hub name"):
        AttentionPlacementPostprocessor(reader("biased")).to_dict()
    with pytest.raises(ValueError, match="give the query, or a curve"):
        AttentionPlacementPostprocessor(reader("uniform")).postprocess_nodes(given()[1])


# --- the query engine ---


async def test_the_model_reads_what_llamaindex_shows_it() -> None:
    """Texts with the metadata that are not excluded; awaited, the retriever is awaited too.

    The wrapping of a tool is no part of the question, and events and spans are balanced.
    """
    query, nodes = given()
    retriever = Given(nodes)
    engine = TwoRoundQueryEngine(retriever, reader("biased"))
    texts = [node.node.get_content(MetadataMode.LLM) for node in nodes]
    assert "page" in texts[0]
    assert "secret" not in texts[0]
    [expected] = TwoRound().run(reader("biased"), [Case(question=query.query_str, documents=texts)])
    before = [node.model_dump_json() for node in nodes]
    with traced() as trace:
        answers = [engine.query(query), await engine.aquery(f"\ninput is {query.query_str}\n")]
    for kind in (QueryStartEvent, QueryEndEvent, SynthesizeStartEvent, SynthesizeEndEvent):
        assert len(trace.of(kind)) == 2
    assert not trace.spans.open_spans
    for found in answers:
        assert found.response == expected.answer
        assert found.metadata["scores"] == [*expected.scores]
        assert json.dumps(found.metadata)
        assert facts(found.source_nodes) == [facts(nodes)[at] for at in expected.order]
        check_same_nodes(found.source_nodes, [node.node for node in nodes])
        check_scores(found.source_nodes)
    assert retriever.asked == ["sync", "async"]
    assert [node.model_dump_json() for node in nodes] == before
    extra = NodeWithScore(node=TextNode(id_="extra", text="more"))
    routed = engine.synthesize(query, nodes, [extra])  # as routers do
    assert await engine.asynthesize(query, nodes, [extra]) == routed
    assert ids(routed.source_nodes) == [*ids(answers[0].source_nodes), "extra"]
