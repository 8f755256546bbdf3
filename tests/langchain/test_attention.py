"""Attention in LangChain's pipes, retrievers and batches."""

import asyncio
import json
import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField

from instruments.corpus import held_out_questions
from langchain_posrag import AttentionPlacement, CAUSRetriever, TwoRoundChain
from shared_core import GenerationError, HuggingFaceModel
from shared_core.attention import TwoRound
from tests.adapters.test_attention import CURVE, FOLDER, reader

from .test_tracing import Tracer


@cache
def _questions() -> list[dict[str, Any]]:
    return held_out_questions(9, k=8, seed=5, confusable=0.5)


def given(number: int, k: int = 6) -> Any:
    """An input of the chain, with nested metadata and the gold document in the middle."""
    each = _questions()[number]
    texts = [*each["distractors"][: k - 1]]
    texts.insert(k // 2, each["gold"])
    return {
        "question": each["question"],
        "documents": [
            Document(text, id=f"d{at}", metadata={"page": at, "tags": {"kind": [at]}})
            for at, text in enumerate(texts[:k])
        ],
    }


def many() -> list[Any]:
    """Inputs of different lengths; none, one and two documents among them."""
    return [given(number, k) for number, k in enumerate((6, 0, 3, 8, 1, 2, 5, 7, 6))]


def retriever_of(asked: Any, **options: Any) -> CAUSRetriever:
    embeddings = DeterministicFakeEmbedding(size=8)
    return CAUSRetriever.from_documents(asked["documents"], embeddings, k=6, **options)


# --- the compressor ---


def test_it_follows_a_retriever_in_a_pipe() -> None:
    """The documents explain which question found them; on a curve nobody needs to know."""
    asked, placer = given(6), AttentionPlacement(reader())
    question = asked["question"]
    explained, plain = (retriever_of(asked, include_scores=told) for told in (True, False))
    expected = placer.compress_documents(explained.invoke(question), question)
    assert (explained | placer).invoke(question) == expected
    assert asyncio.run((explained | placer).ainvoke(question)) == expected
    with pytest.raises(ValueError, match="AttentionPlacement needs the question, which these"):
        (plain | placer).invoke(question)
    assert len((plain | AttentionPlacement(reader(), curve=CURVE)).invoke(question)) == 6


@pytest.mark.parametrize("include_scores", [False, True])
def test_scores_can_be_left_out(include_scores: bool) -> None:
    """The order is the same, the metadata the caller's; what is returned shares nothing with it."""
    asked = given(2)
    placer = AttentionPlacement(reader(), include_scores=include_scores)
    chain = TwoRoundChain(reader(), include_scores=include_scores)
    answered = chain.invoke(asked)
    for found in (
        placer.compress_documents(asked["documents"], asked["question"]),
        answered["documents"],
    ):
        assert [each.id for each in found] == [f"d{at}" for at in answered["order"]]
        for each in found:
            why = each.metadata.pop("posrag", None)
            assert (why is not None) == include_scores
            each.metadata["tags"]["kind"].append("changed")
    assert len(answered["scores"]) == 6
    assert asked == given(2)


def test_options_survive_json_and_pickle() -> None:
    """Of a model that was given by its name; a loaded one cannot be written."""
    placer = AttentionPlacement(str(FOLDER / "biased"), curve=CURVE, include_scores=False)
    written = AttentionPlacement(**json.loads(placer.model_dump_json()))
    for same in (written, pickle.loads(pickle.dumps(placer))):
        assert (same.curve, same.include_scores) == (CURVE, False)
        assert same.model.location == str(FOLDER / "biased")
    with pytest.raises(ValueError, match="give its folder or hub name"):
        AttentionPlacement(reader()).model_dump_json()


# --- the chain ---


async def test_batches_and_async_are_what_one_by_one_is() -> None:
    """Up to rounding of the scores, which padding causes."""
    chain, inputs = TwoRoundChain(reader()), many()
    one_by_one = [chain.invoke(asked) for asked in inputs]
    assert [await chain.ainvoke(asked) for asked in inputs] == one_by_one
    for found in (chain.batch(inputs), await chain.abatch(inputs)):
        for one, other in zip(found, one_by_one, strict=True):
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-6)
            assert [each.id for each in one["documents"]] == [e.id for e in other["documents"]]
            assert (one["answer"], one["rounds"]) == (other["answer"], other["rounds"])
    assert chain.batch([]) == await chain.abatch([]) == []


def test_a_batch_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that questions share forward passes."""
    runs = []
    run = TwoRound.run

    def counted(self: TwoRound, model: Any, cases: Sequence[Any]) -> Any:
        runs.append(len(cases))
        return run(self, model, cases)

    monkeypatch.setattr(TwoRound, "run", counted)
    TwoRoundChain(reader()).batch(many())
    assert runs == [9]


async def test_every_input_is_a_run_with_its_own_config() -> None:
    """One at a time and in batches."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    configs: Any = [{"callbacks": [tracer], "tags": [str(at)]} for at in range(2)]
    first = chain.invoke(given(0), configs[0])
    await chain.ainvoke(given(0), configs[1])
    chain.batch([given(0), given(1)], configs)
    await chain.abatch([given(0), given(1)], configs)
    assert [(run.name, run.tags) for run in tracer.roots] == [
        ("TwoRoundChain", [at]) for at in "010101"
    ]
    assert tracer.roots[0].outputs == first


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_input_at_fault_costs_the_others_nothing(asynchronous: bool) -> None:
    """If the exceptions are asked for; else the first of them is raised."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    empty = {"question": "x", "documents": [Document("a"), Document("")]}
    inputs: list[Any] = [given(0), {"question": "x"}, given(1), empty, given(2), "x"]
    faults = {1: "must be a dict", 3: "document 1 has no token", 5: "must be a dict"}
    given_: Any = {"config": {"callbacks": [tracer]}, "return_exceptions": True}
    found: list[Any] = (
        await chain.abatch(inputs, **given_) if asynchronous else chain.batch(inputs, **given_)
    )
    for at, asked in enumerate(inputs):
        if at in faults:
            assert isinstance(found[at], ValueError)
            assert faults[at] in str(found[at])
        else:
            assert found[at] == chain.invoke(asked)
    assert sorted(bool(run.error) for run in tracer.roots) == [False] * 3 + [True] * 3
    with pytest.raises(ValueError, match="must be a dict"):
        await chain.abatch(inputs) if asynchronous else chain.batch(inputs)


def test_a_batch_without_a_model_fails_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not looked for again and again; options that a call sets share the model."""
    loads = []

    def failing(name: str) -> HuggingFaceModel:
        loads.append(name)
        raise GenerationError(f"no model {name}")

    monkeypatch.setattr(HuggingFaceModel, "from_pretrained", failing)
    found = TwoRoundChain("no such/folder").batch([given(0)] * 4, return_exceptions=True)
    assert [type(each) for each in found] == [GenerationError] * 4
    assert loads == ["no such/folder"]
    field = ConfigurableField(id="placement")
    chain = TwoRoundChain(reader()).configurable_fields(placement=field)
    found = chain.invoke(given(0), {"configurable": {"placement": "relevant_last"}})
    assert found == TwoRoundChain(reader(), placement="relevant_last").invoke(given(0))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"documents": []}, r"must be a dict with 'question' and 'documents', got \['documents'\]"),
        ({"question": None, "documents": []}, "'question' must be a string, got NoneType"),
        ({"question": "x", "documents": None}, "documents must be a list, got None"),
        ({"question": "x", "documents": ["a"]}, r"documents\[0\] must be a Document, got 'a'"),
        ("x", "must be a dict with 'question' and 'documents', got str"),
    ],
)
def test_bad_input_is_named(wrong: Any, message: str) -> None:
    """Before the model is loaded."""
    with pytest.raises(ValueError, match=message):
        TwoRoundChain("no such folder").invoke(wrong)
