"""The same documents before the same model: one order, one answer, from all three packages."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from instruments.corpus import held_out_questions
from langchain_posrag import PlacementTransformer
from langchain_posrag.attention import AttentionPlacement
from langchain_posrag.two_round import TwoRoundChain
from llamaindex_posrag import PlacementPostprocessor
from llamaindex_posrag.attention import AttentionPlacementPostprocessor
from llamaindex_posrag.two_round import TwoRoundQueryEngine
from shared_core import HuggingFaceModel
from shared_core.attention.prompt import render_prompt
from shared_core.attention.relevance import ESTIMATORS
from shared_core.attention.rounds import Case, TwoRound
from shared_core.placement.attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity import ANSWER
from shared_core.sensitivity.curve import PositionalCurve

ROOT = Path(__file__).parents[2]
PLACEMENTS = (*ATTENTION_PLACEMENTS, "relevant_last")
CURVES = {
    "left": PositionalCurve(model="left", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7),
    "right": PositionalCurve(model="right", scores=(1.0, 0.2, 4.0), n=1),
    "flat": PositionalCurve(model="flat", scores=(1.0,), n=1),
}


@cache
def reader(name: str) -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(ROOT / "instruments" / name, max_new_tokens=4)


@cache
def question(k: int) -> dict[str, Any]:
    [each] = held_out_questions(1, k=max(k, 1), seed=100 + k, confusable=0.5)
    texts = [*each["distractors"]]
    texts.insert(k // 2, each["gold"])
    return {"question": each["question"], "texts": texts[:k]}


def documents(k: int) -> list[Document]:
    return [Document(text, id=f"p{at}") for at, text in enumerate(question(k)["texts"])]


def nodes(k: int) -> list[NodeWithScore]:
    texts = question(k)["texts"]
    return [NodeWithScore(node=TextNode(id_=f"p{at}", text=t)) for at, t in enumerate(texts)]


class Given(BaseRetriever):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes(self.k)


def both_places(k: int, model: HuggingFaceModel, **options: Any) -> tuple[list[Any], list[Any]]:
    """Ids and explanations of each framework's one-round placement."""
    asked = question(k)["question"]
    one = AttentionPlacement(model, **options).compress_documents(documents(k), asked)
    other = AttentionPlacementPostprocessor(model, **options).postprocess_nodes(
        nodes(k), QueryBundle(asked)
    )
    return (
        [(each.id, each.metadata.get("posrag", {})) for each in one],
        [(each.node.node_id, each.posrag) for each in other],  # type: ignore[attr-defined]
    )


@pytest.mark.parametrize("k", range(13))
def test_one_round_places_alike(k: int) -> None:
    """Every placement and estimator: order, ranks and scores, bit for bit."""
    model = reader(("biased", "uniform")[k % 2])
    case = Case(question=question(k)["question"], documents=question(k)["texts"])
    for estimator in ESTIMATORS:
        for placement in PLACEMENTS:
            options = {"estimator": estimator, "placement": placement}
            one, other = both_places(k, model, **options)
            [core] = TwoRound(**options).first(model, [case])
            assert one == other
            assert [id_ for id_, _ in one] == [f"p{at}" for at in core.order]
            if k > 1:
                assert [why["score"] for _, why in one] == [core.scores[at] for at in core.order]


@pytest.mark.parametrize("k", range(13))
@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_places_alike(curve: str, k: int) -> None:
    """By every placement that reads positions."""
    model = reader("uniform")
    asked = question(k)
    lengths = render_prompt(model.encoder, ANSWER, asked["texts"], asked["question"]).lengths
    scores = CURVES[curve].scores_for(sum(lengths))
    for placement, place in ATTENTION_PLACEMENTS.items():
        one, other = both_places(k, model, placement=placement, curve=CURVES[curve])
        assert one == other
        assert [id_ for id_, _ in one] == [f"p{at}" for at in place(range(k), scores, lengths)]


@pytest.mark.parametrize("curve", [None, CURVES["left"]], ids=["own round", "curve"])
def test_a_later_placement_takes_over_what_is_said_of_the_slot(
    curve: PositionalCurve | None,
) -> None:
    """A curve did not put the text where it stands now; the score is still the estimator's."""
    model, asked = reader("uniform"), question(5)["question"]
    compressor = AttentionPlacement(model, curve=curve)
    documents_ = compressor.compress_documents(documents(5), asked)
    postprocessor = AttentionPlacementPostprocessor(model, curve=curve)
    nodes_ = postprocessor.postprocess_nodes(nodes(5), QueryBundle(asked))
    one = [each.metadata["posrag"] for each in PlacementTransformer("inverse").invoke(documents_)]
    placement = PlacementPostprocessor("inverse", psi="always")
    other = [each.posrag for each in placement.postprocess_nodes(nodes_)]  # type: ignore[attr-defined]
    assert one == other
    assert {why["placement"] for why in one} == {"inverse"}
    told = {key for why in one for key in why}
    assert "curve" not in told
    assert ("estimator" in told) == ("score" in told) == (curve is None)


@pytest.mark.parametrize("k", range(13))
def test_two_rounds_answer_alike(k: int) -> None:
    """Answers, orders, scores and rounds, without documents too."""
    model = reader(("biased", "uniform")[k % 2])
    asked = question(k)["question"]
    case = Case(question=asked, documents=question(k)["texts"])
    for placement in PLACEMENTS:
        [core] = TwoRound(placement=placement).run(model, [case])
        one = TwoRoundChain(model, placement=placement).invoke(
            {"question": asked, "documents": documents(k)}
        )
        other = TwoRoundQueryEngine(Given(k), model, placement=placement).query(asked)
        assert one["answer"] == str(other.response) == core.answer
        for key in ("first_answer", "order", "scores", "rounds"):
            expected = getattr(core, key)
            expected = [*expected] if isinstance(expected, tuple) else expected
            assert one[key] == other.metadata[key] == expected
        assert [(each.id, each.metadata["posrag"]) for each in one["documents"]] == [
            (each.node.node_id, each.posrag)  # type: ignore[attr-defined]
            for each in other.source_nodes
        ]
        assert [each.id for each in one["documents"]] == [f"p{at}" for at in core.order]
