"""Attention in LangChain's pipes, retrievers and batches."""

import asyncio
import json
import pickle
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField

from langchain_posrag import AttentionPlacement, TwoRoundChain
from tests.adapters.drivers import LangChain
from tests.adapters.test_attention import CURVE, FOLDER, asked, passages, reader

from .test_tracing import Tracer

SIDE = LangChain()


def given(k: int = 6) -> Any:
    """An input of the chain, with the gold document in the middle."""
    return {"question": asked(k).question, "documents": SIDE.items(passages(asked(k)))}


# --- the compressor ---


def test_it_follows_a_retriever_in_a_pipe() -> None:
    """The documents explain which question found them; on a curve nobody needs to know."""
    question, placer = asked(6).question, AttentionPlacement(reader())
    explained, plain = (
        SIDE.build(passages(asked(6)), include_scores=told) for told in (True, False)
    )
    expected = placer.compress_documents(explained.invoke(question), question)
    assert (explained | placer).invoke(question) == expected
    assert asyncio.run((explained | placer).ainvoke(question)) == expected
    with pytest.raises(ValueError, match="AttentionPlacement needs the question, which these"):
        (plain | placer).invoke(question)
    assert len((plain | AttentionPlacement(reader(), curve=CURVE)).invoke(question)) == 6


def test_scores_can_be_left_out() -> None:
    """The order is the same."""
    answered = TwoRoundChain(reader(), include_scores=False).invoke(given())
    placer = AttentionPlacement(reader(), include_scores=False)
    placed = placer.compress_documents(given()["documents"], given()["question"])
    assert placed == answered["documents"] == [given()["documents"][at] for at in answered["order"]]
    assert len(answered["scores"]) == 6


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
    chain, inputs = TwoRoundChain(reader()), [given(k) for k in (6, 0, 3, 8, 1, 2)]
    one_by_one = [chain.invoke(each) for each in inputs]
    assert [await chain.ainvoke(each) for each in inputs] == one_by_one
    for found in (chain.batch(inputs), await chain.abatch(inputs)):
        for one, other in zip(found, one_by_one, strict=True):
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-6)
            assert [each.id for each in one["documents"]] == [e.id for e in other["documents"]]
            assert (one["answer"], one["rounds"]) == (other["answer"], other["rounds"])
    assert chain.batch([]) == await chain.abatch([]) == []


async def test_every_input_is_a_run_with_its_own_config() -> None:
    """One at a time and in batches."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    configs: Any = [{"callbacks": [tracer], "tags": [str(at)]} for at in range(2)]
    first = chain.invoke(given(), configs[0])
    await chain.ainvoke(given(), configs[1])
    chain.batch([given(), given(3)], configs)
    await chain.abatch([given(), given(3)], configs)
    assert [(run.name, run.tags) for run in tracer.roots] == [
        ("TwoRoundChain", [at]) for at in "010101"
    ]
    assert tracer.roots[0].outputs == first


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_input_at_fault_costs_the_others_nothing(asynchronous: bool) -> None:
    """If the exceptions are asked for; else the first of them is raised."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    empty = {"question": "x", "documents": [Document("a"), Document("")]}
    inputs: list[Any] = [given(), {"question": "x"}, given(3), empty, given(4), "x"]
    faults = {1: "must be a dict", 3: "document 1 has no token", 5: "must be a dict"}
    given_: Any = {"config": {"callbacks": [tracer]}, "return_exceptions": True}
    found: list[Any] = (
        await chain.abatch(inputs, **given_) if asynchronous else chain.batch(inputs, **given_)
    )
    for at, each in enumerate(inputs):
        if at in faults:
            assert isinstance(found[at], ValueError)
            assert faults[at] in str(found[at])
        else:
            assert found[at] == chain.invoke(each)
    assert sorted(bool(run.error) for run in tracer.roots) == [False] * 3 + [True] * 3
    with pytest.raises(ValueError, match="must be a dict"):
        await chain.abatch(inputs) if asynchronous else chain.batch(inputs)


def test_a_call_may_set_options() -> None:
    """They share the model."""
    field = ConfigurableField(id="placement")
    chain = TwoRoundChain(reader()).configurable_fields(placement=field)
    found = chain.invoke(given(), {"configurable": {"placement": "back_first"}})
    assert found == TwoRoundChain(reader(), placement="back_first").invoke(given())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"documents": []}, r"must be a dict with 'question' and 'documents', got \['documents'\]"),
        ({"question": None, "documents": []}, "'question' must be a string, got NoneType"),
        ({"question": "x", "documents": ["a"]}, r"documents\[0\] must be a Document, got 'a'"),
    ],
)
def test_bad_input_is_named(wrong: Any, message: str) -> None:
    """Before the model is loaded."""
    with pytest.raises(ValueError, match=message):
        TwoRoundChain("no such folder").invoke(wrong)
