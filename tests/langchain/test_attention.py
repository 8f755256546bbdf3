"""Attention in LangChain's pipes, retrievers and batches."""

import asyncio
import json
import pickle
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_core.documents import Document

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
    """Up to rounding of the scores, which padding causes; every input is a run with its config."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    inputs = [given(k) for k in (6, 0, 3, 1)]
    configs: Any = [{"callbacks": [tracer], "tags": [str(at)]} for at in range(4)]
    pairs = [*zip(inputs, configs, strict=True)]
    one_by_one = [chain.invoke(*each) for each in pairs]
    assert [await chain.ainvoke(*each) for each in pairs] == one_by_one
    for found in (chain.batch(inputs, configs), await chain.abatch(inputs, configs)):
        for one, other in zip(found, one_by_one, strict=True):
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-6)
            assert [each.id for each in one["documents"]] == [e.id for e in other["documents"]]
            assert (one["answer"], one["rounds"]) == (other["answer"], other["rounds"])
    runs = sorted((run.name, *(run.tags or ())) for run in tracer.roots)
    assert runs == [("TwoRoundChain", at) for at in "0123" for _ in range(4)]
    assert tracer.roots[0].outputs == one_by_one[0]
    assert chain.batch([]) == await chain.abatch([]) == []


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_input_at_fault_costs_the_others_nothing(asynchronous: bool) -> None:
    """If the exceptions are asked for; else the first of them is raised."""
    chain, tracer = TwoRoundChain(reader()), Tracer()
    empty = {"question": "x", "documents": [Document("a"), Document("")]}
    inputs: list[Any] = [given(), {"question": "x"}, given(3), empty]
    given_: Any = {"config": {"callbacks": [tracer]}, "return_exceptions": True}
    found: list[Any] = (
        await chain.abatch(inputs, **given_) if asynchronous else chain.batch(inputs, **given_)
    )
    assert [found[0], found[2]] == [chain.invoke(inputs[0]), chain.invoke(inputs[2])]
    for at, told in ((1, "must be a dict"), (3, "document 1 has no token")):
        assert isinstance(found[at], ValueError)
        assert told in str(found[at])
    assert sorted(bool(run.error) for run in tracer.roots) == [False] * 2 + [True] * 2
    with pytest.raises(ValueError, match="must be a dict"):
        await chain.abatch(inputs) if asynchronous else chain.batch(inputs)


def test_bad_input_is_named() -> None:
    """Before the model is loaded."""
    for wrong, message in (
        ({"question": None, "documents": []}, "'question' must be a string, got NoneType"),
        ({"question": "x", "documents": ["a"]}, r"documents\[0\] must be a Document, got 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            TwoRoundChain("no such folder").invoke(wrong)
