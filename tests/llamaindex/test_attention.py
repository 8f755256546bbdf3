"""Nodes placed by a local model's attention, and its two rounds, on the two readers."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.instrumentation.events.synthesis import (
    SynthesizeEndEvent,
    SynthesizeStartEvent,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool

from instruments.corpus import held_out_questions
from llamaindex_posrag import PlacementPostprocessor
from llamaindex_posrag.attention import AttentionPlacementPostprocessor
from llamaindex_posrag.two_round import TwoRoundQueryEngine
from shared_core import GenerationError, HuggingFaceModel
from shared_core.attention.prompt import render_prompt
from shared_core.attention.relevance import ESTIMATORS, ranking_of
from shared_core.attention.rounds import Case, TwoRound
from shared_core.generation.local_model import LocalModel
from shared_core.placement.attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity.curve import PositionalCurve

from .checks import BrokenNode, check_same_nodes, check_scores, facts, ids
from .contract import PostprocessorContract
from .doubles import QUERY, CallbackLog, scored, traced

FOLDER = Path(__file__).parents[2] / "instruments"
PLACEMENTS = (*ATTENTION_PLACEMENTS, "relevant_last")
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)


@cache
def reader(name: str) -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(FOLDER / name, max_new_tokens=4)


@cache
def roomy_reader() -> HuggingFaceModel:
    """A reader that takes the contract's longest prompts, of words that are foreign to it."""
    found = HuggingFaceModel.from_pretrained(FOLDER / "biased", max_new_tokens=4)
    found.model.config.max_position_embeddings = 4096
    return found


@pytest.fixture(params=["biased", "uniform"])
def model(request: pytest.FixtureRequest) -> HuggingFaceModel:
    return reader(request.param)


@cache
def _questions() -> list[dict[str, Any]]:
    return held_out_questions(9, k=8, seed=5, confusable=0.5)


def given(number: int, k: int = 6) -> tuple[QueryBundle, list[NodeWithScore]]:
    """A query and nodes, some of whose metadata the model reads, the gold one in the middle."""
    each = _questions()[number]
    texts = [*each["distractors"][: k - 1]]
    texts.insert(k // 2, each["gold"])
    return QueryBundle(each["question"]), [
        NodeWithScore(
            node=TextNode(
                id_=f"n{at}",
                text=text,
                metadata={"page": at, "secret": "?"},
                excluded_llm_metadata_keys=["secret"],
            ),
            score=1 / (1 + at),
        )
        for at, text in enumerate(texts[:k])
    ]


def case_of(query: QueryBundle, nodes: Sequence[NodeWithScore]) -> Case:
    texts = [node.node.get_content(MetadataMode.LLM) for node in nodes]
    return Case(question=query.query_str, documents=texts)


def details(nodes: Sequence[Any]) -> list[dict[str, Any]]:
    return [node.posrag for node in nodes]


def in_a_loop(post: BaseNodePostprocessor) -> Callable[..., list[NodeWithScore]]:
    return lambda nodes, query: asyncio.run(post.apostprocess_nodes(nodes, query))


class Given(BaseRetriever):
    """Return the same nodes whatever is asked."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = nodes
        self.asked: list[str] = []

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append("sync")
        return self.nodes

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append("async")
        return self.nodes


# --- the contract ---


class Asking(AttentionPlacementPostprocessor):
    """Ask `QUERY` where the contract leaves the query out."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return super()._postprocess_nodes(nodes, query_bundle or QueryBundle(QUERY))


class TestOnACurve(PostprocessorContract):
    @pytest.fixture(params=ATTENTION_PLACEMENTS)
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return AttentionPlacementPostprocessor(
            FOLDER / "uniform", placement=request.param, curve=CURVE
        )

    @pytest.mark.parametrize("case", ["none", "nan", "tied", "zero"])
    def test_without_a_difference_the_first_node_gets_an_edge(
        self, postprocessor: BaseNodePostprocessor, case: str
    ) -> None:
        self.best_at_an_edge = postprocessor.placement == "attention_u_shape"
        super().test_without_a_difference_the_first_node_gets_an_edge(postprocessor, case)


class TestInARoundOfTheModel(PostprocessorContract):
    best_at_an_edge: ClassVar[bool] = False  # what is best the model says
    round_trips: ClassVar[bool] = False  # a loaded model cannot be written

    @pytest.fixture(params=ESTIMATORS)
    def postprocessor(self, request: pytest.FixtureRequest) -> BaseNodePostprocessor:
        return Asking(roomy_reader(), estimator=request.param)

    def test_the_query_may_be_absent_or_blank(self, postprocessor: BaseNodePostprocessor) -> None:
        if postprocessor.estimator == "icr":
            # it reads the rows of the question's tokens
            with pytest.raises(ValueError, match="but the question is ''"):
                postprocessor.postprocess_nodes(scored(), QueryBundle(""))
        else:
            super().test_the_query_may_be_absent_or_blank(postprocessor)


# --- the postprocessor ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_order_is_that_of_the_core(
    model: HuggingFaceModel, estimator: str, placement: str
) -> None:
    """With its ranks and scores; those of the retriever stay."""
    query, nodes = given(0)
    core = TwoRound(estimator=estimator, placement=placement)
    [expected] = core.first(model, [case_of(query, nodes)])
    out = AttentionPlacementPostprocessor(
        model, estimator=estimator, placement=placement
    ).postprocess_nodes(nodes, query)
    assert facts(out) == [facts(nodes)[at] for at in expected.order]
    check_same_nodes(out, [node.node for node in nodes])
    check_scores(out)
    ranking = ranking_of(expected.scores)
    assert details(out) == [
        {
            "rank": ranking.index(at),
            "slot": slot,
            "score": expected.scores[at],
            "placement": placement,
            "estimator": estimator,
        }
        for slot, at in enumerate(expected.order)
    ]
    assert json.loads(out[0].model_dump_json())["posrag"] == details(out)[0]


@pytest.mark.parametrize("placement", ATTENTION_PLACEMENTS)
def test_a_curve_needs_neither_a_query_nor_a_round(
    model: HuggingFaceModel, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ranking is the order in which the nodes come."""
    query, nodes = given(1)
    case = case_of(query, nodes)
    post = AttentionPlacementPostprocessor(model, placement=placement, curve=CURVE)
    lengths = render_prompt(model.encoder, post.template, case.documents, query.query_str).lengths
    order = ATTENTION_PLACEMENTS[placement](
        range(len(nodes)), CURVE.scores_for(sum(lengths)), lengths
    )
    monkeypatch.setattr(model.model, "forward", None)
    for asked in (query, None):
        out = post.postprocess_nodes(nodes, asked)
        assert ids(out) == [f"n{at}" for at in order]
        assert details(out) == [
            {"rank": at, "slot": slot, "placement": placement, "curve": "some"}
            for slot, at in enumerate(order)
        ]


@pytest.mark.parametrize("fault", ["no query", "broken node", "empty node", "no model"])
def test_what_goes_wrong_is_raised_between_the_events(fault: str) -> None:
    """Start and end, whatever happens."""
    query, nodes = given(0)
    model: Any = "no such/folder" if fault == "no model" else reader("uniform")
    asked = None if fault == "no query" else query
    if fault == "broken node":
        nodes.append(NodeWithScore(node=BrokenNode(id_="broken")))
    if fault == "empty node":
        nodes.append(NodeWithScore(node=TextNode(text="")))
    kind, message = {
        "no query": (ValueError, "give the query, or a curve"),
        "broken node": (RuntimeError, "unreadable"),
        "empty node": (ValueError, "document 6 has no token"),
        "no model": (GenerationError, "no such/folder"),
    }[fault]
    post = AttentionPlacementPostprocessor(model)
    for asynchronous in (False, True):
        process = in_a_loop(post) if asynchronous else post.postprocess_nodes
        with traced() as trace, pytest.raises(kind, match=message) as caught:
            process(nodes, asked)
        assert "\n" not in str(caught.value)
        assert len(trace.of(ReRankStartEvent)) == len(trace.of(ReRankEndEvent)) == 1


def test_a_copy_with_another_option_does_what_it_shows(model: HuggingFaceModel) -> None:
    """With the same model, and options that are checked."""
    query, nodes = given(1)
    post = AttentionPlacementPostprocessor(model, placement="direct_u", curve=CURVE)
    copied = post.model_copy(update={"placement": "attention_u_shape_reversed"})
    assert copied.model is post.model
    out = copied.postprocess_nodes(nodes, query)
    assert {why["placement"] for why in details(out)} == {"attention_u_shape_reversed"}
    with pytest.raises(ValueError, match="v_shape"):
        post.model_copy(update={"placement": "v_shape"})


def test_fewer_than_two_nodes_need_no_model() -> None:
    """Nor a query; they are copied as they are."""
    post = AttentionPlacementPostprocessor("no such/folder")
    _, nodes = given(0, 1)
    assert post.postprocess_nodes([]) == []
    out = post.postprocess_nodes(nodes)
    assert facts(out) == facts(nodes)
    assert details(out) == [{}]
    assert out[0] is not nodes[0]


def test_what_explained_a_node_so_far_stays_but_for_its_slot(model: HuggingFaceModel) -> None:
    """The gate that left it where it was has no say in the new slot."""
    query, nodes = given(2)
    earlier: list[Any] = PlacementPostprocessor("u_shape", psi="never").postprocess_nodes(nodes)
    for node in earlier:
        node.posrag["dense"] = 0.5
    before = copy.deepcopy(details(earlier))
    out = AttentionPlacementPostprocessor(model).postprocess_nodes(earlier, query)
    keys = {"rank", "slot", "score", "placement", "estimator", "dense"}
    assert [each.keys() for each in details(out)] == [keys] * len(out)
    assert details(earlier) == before


def test_a_model_is_given_in_any_form() -> None:
    """Loaded, as a pair, as a folder and as its path: the same order."""
    query, nodes = given(0)
    loaded, folder = reader("biased"), FOLDER / "biased"
    forms = [loaded, (loaded.model, loaded.tokenizer), folder, str(folder), LocalModel(folder)]
    found = [
        facts(
            AttentionPlacementPostprocessor(form, estimator="attention_sorting").postprocess_nodes(
                nodes, query
            )
        )
        for form in forms
    ]
    assert all(each == found[0] for each in found)


def test_to_dict_holds_the_folder_and_refuses_a_loaded_model() -> None:
    """Rather than leave it out, for it could not be read back."""
    post = AttentionPlacementPostprocessor("some/model", curve=CURVE, placement="direct_u")
    same = AttentionPlacementPostprocessor.from_dict(json.loads(post.to_json()))
    assert (same.curve, same.placement, same.template) == (CURVE, "direct_u", post.template)
    assert same.to_dict() == post.to_dict()
    assert post.to_dict()["model"] == "some/model"
    with pytest.raises(ValueError, match="give its folder or hub name"):
        AttentionPlacementPostprocessor(reader("biased")).to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": 3}, "model must be a HuggingFaceModel"),
        ({"estimator": "guess"}, "guess"),
        ({"placement": "u_shape"}, "u_shape"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    """By both classes, at once."""
    arguments = {"model": "some/model", **options}
    with pytest.raises(ValueError, match=message):
        AttentionPlacementPostprocessor(**arguments)
    with pytest.raises(ValueError, match=message):
        TwoRoundQueryEngine(Given([]), **arguments)


def test_unknown_options_are_refused() -> None:
    """In code and in a dictionary."""
    with pytest.raises(TypeError, match="slot"):
        AttentionPlacementPostprocessor("some/model", slot=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="slot"):
        TwoRoundQueryEngine(Given([]), "some/model", slot=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="does not use a curve"):
        AttentionPlacementPostprocessor("some/model", placement="relevant_last", curve=CURVE)


# --- the query engine ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("k", [0, 1, 2, 6])
async def test_the_engine_answers_as_the_core_does(
    model: HuggingFaceModel, estimator: str, k: int
) -> None:
    """Sync and async, which retrieves natively."""
    query, nodes = given(3, k)
    retriever = Given(nodes)
    engine = TwoRoundQueryEngine(retriever, model, estimator=estimator, placement="direct_u")
    core = TwoRound(estimator=estimator, placement="direct_u")
    [expected] = core.run(model, [case_of(query, nodes)])
    before = [node.model_dump_json() for node in nodes]
    for asked in (engine.query(query), await engine.aquery(query.query_str)):
        assert asked.response == expected.answer
        assert asked.metadata == {
            "first_answer": expected.first_answer,
            "order": list(expected.order),
            "scores": list(expected.scores),
            "rounds": expected.rounds,
            "without_context": k == 0,
        }
        assert json.dumps(asked.metadata)
        assert facts(asked.source_nodes) == [facts(nodes)[at] for at in expected.order]
        check_same_nodes(asked.source_nodes, [node.node for node in nodes])
        assert [why["score"] for why in details(asked.source_nodes)] == [
            expected.scores[at] for at in expected.order
        ]
    assert retriever.asked == ["sync", "async"]
    assert [node.model_dump_json() for node in nodes] == before


def test_the_second_round_is_skipped_where_nothing_moves(
    model: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the metadata say so."""
    found = []
    for number in range(4):
        query, nodes = given(number, 2)
        retriever = Given(nodes[:: (-1) ** number])  # the relevant one is last, first, last, first
        engine = TwoRoundQueryEngine(
            retriever, model, estimator="producer", placement="relevant_last"
        )
        found.append((engine.query(query).metadata["rounds"], engine, query))
    assert {rounds for rounds, _, _ in found} == {1, 2}
    _, engine, query = next(each for each in found if each[0] == 1)
    monkeypatch.setattr(HuggingFaceModel, "generate", lambda model, prompts: ["?"] * len(prompts))
    again = engine.query(query)
    assert again.metadata["rounds"] == 1
    assert again.metadata["order"] == [0, 1]
    assert again.response == again.metadata["first_answer"]


@pytest.mark.parametrize("case", ["sync", "async", "error"])
def test_events_and_spans_are_balanced(case: str) -> None:
    """Of the query, of the synthesis and of the callback manager."""
    query, nodes = given(0)
    if case == "error":
        nodes.append(NodeWithScore(node=BrokenNode(id_="broken")))
    log = CallbackLog()
    engine = TwoRoundQueryEngine(
        Given(nodes), reader("biased"), callback_manager=CallbackManager([log])
    )
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
    assert sorted(log.started) == sorted(log.ended)
    assert {CBEventType.QUERY, CBEventType.SYNTHESIZE} <= {*log.started}


async def test_given_nodes_are_synthesised_too(model: HuggingFaceModel) -> None:
    """As routers and sub-question engines do; additional nodes are only passed on."""
    query, nodes = given(4)
    extra = NodeWithScore(node=TextNode(id_="extra", text="more"))
    engine = TwoRoundQueryEngine(Given(nodes), model)
    assert engine.retrieve(query) == await engine.aretrieve(query) == nodes
    one = engine.synthesize(query, nodes, [extra])
    other = await engine.asynthesize(query, nodes, [extra])
    assert one == other
    assert ids(one.source_nodes) == [*ids(engine.query(query).source_nodes), "extra"]
    assert engine.get_prompts() == {}
    tool = QueryEngineTool.from_defaults(engine, name="stations", description="Stations.")
    assert str(tool.call(query.query_str)) == one.response


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_engine_leaves_out_the_wrapping_of_a_tool(estimator: str) -> None:
    """An index node may lead to it, behind a retriever that is one."""
    query, nodes = given(5)
    engine = TwoRoundQueryEngine(Given(nodes), reader("biased"), estimator=estimator)
    expected = engine.query(query)
    for asked in (f"\ninput is {query.query_str}\n", f"{query.query_str}\n\n"):
        assert engine.query(asked) == expected


def test_a_folder_that_is_not_there_is_an_error_of_one_line() -> None:
    """When it is first asked, not before."""
    query, nodes = given(0)
    engine = TwoRoundQueryEngine(Given(nodes), "no such/folder at all")
    with pytest.raises(GenerationError, match="no such/folder at all") as caught:
        engine.query(query)
    assert "\n" not in str(caught.value)
