"""Both hosts of the gate: a Runnable that writes the prompt, a retriever that may keep still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnablePassthrough,
)

from langchain_posrag import (
    CAUSRetriever,
    ContextAwarenessGate,
    GatedRetriever,
    PlacementTransformer,
)
from tests.adapters.drivers import LangChainModel
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed

from .test_tracing import Tracer

Ask = Callable[..., Any]
Host = type[ContextAwarenessGate] | type[GatedRetriever]
BOTH: list[Host] = [ContextAwarenessGate, GatedRetriever]


DOCUMENTS = [Document(text, id=id) for id, text in zip(IDS, PASSAGES, strict=True)]
WORDS = LangChainModel(embed)


@pytest.fixture
def retriever() -> CAUSRetriever:
    return CAUSRetriever.from_documents(DOCUMENTS, WORDS, k=3)


@pytest.fixture
def gate(retriever: CAUSRetriever) -> ContextAwarenessGate:
    return ContextAwarenessGate.from_retriever(retriever)


def invoked(asked: Runnable[str, Any], question: str, config: Any = None) -> Any:
    return asked.invoke(question, config)


def awaited(asked: Runnable[str, Any], question: str, config: Any = None) -> Any:
    return asyncio.run(asked.ainvoke(question, config))


def batched(asked: Runnable[str, Any], question: str, config: Any = None) -> Any:
    return asked.batch([OUTSIDE, question], config)[1]


WAYS = [invoked, awaited]


def found(answer: Any) -> list[Document]:
    """Return the documents of either host."""
    documents: list[Document] = answer if isinstance(answer, list) else answer.documents
    return documents


def test_a_chain_streams_word_by_word_and_hands_on_the_decision(gate: ContextAwarenessGate) -> None:
    """The gate does not hold the model's tokens back."""
    model = FakeListChatModel(responses=["abc"])
    assert [part.content for part in (gate | model).stream(OUTSIDE)][:3] == ["a", "b", "c"]
    chain = gate | {"answer": model | StrOutputParser(), "prompt": RunnablePassthrough()}
    told = chain.invoke(OUTSIDE)
    assert (told["answer"], told["prompt"].decision["retrieve"]) == ("abc", False)


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize("host", BOTH)
def test_a_trace_shows_the_decision(retriever: CAUSRetriever, host: Host, ask: Ask) -> None:
    """Also where no document carries it. Tags are inherited, a name is not; an error ends all."""
    gate, tracer = host.from_retriever(retriever), Tracer()
    config = {"callbacks": [tracer], "run_name": "mine", "tags": ["a"]}
    ask(gate, OUTSIDE, config)
    with pytest.raises(ValueError, match="the query is blank"):
        ask(gate, " ", config)
    root, failed = tracer.roots
    (decision,) = root.child_runs
    (below,) = decision.child_runs
    names = [(run.name, run.tags) for run in (root, decision, below)]
    assert names == [(name, ["a"]) for name in ("mine", "retrieve_or_not", "CAUSRetriever")]
    assert (decision.outputs or {})["retrieve"] is False
    assert all("blank" in (run.error or "") for run in (failed, *failed.child_runs))


async def test_a_gate_that_is_cancelled_leaves_no_run_open(gate: ContextAwarenessGate) -> None:
    tracer, started = Tracer(), asyncio.Event()

    async def hang(_: str) -> list[Document]:
        started.set()
        await asyncio.Event().wait()
        return []

    gated = ContextAwarenessGate(retriever=RunnableLambda(hang), gate=gate.gate)
    task = asyncio.create_task(gated.ainvoke(INSIDE, {"callbacks": [tracer]}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "CancelledError" in (tracer.roots[0].child_runs[0].error or "")
    assert not tracer.run_map


@pytest.mark.parametrize("ask", [*WAYS, batched])
def test_the_retriever_finds_what_the_one_behind_it_finds_or_nothing(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """Copies of it, with the decision; the explanation so far stays."""
    gated = GatedRetriever.from_retriever(retriever)
    through = ask(gated, INSIDE)
    assert through[0].metadata["posrag"].pop("retrieval")["retrieve"] is True
    assert through[0] == retriever.invoke(INSIDE)[0]
    assert ask(gated, OUTSIDE) == []


@pytest.mark.parametrize("ask", WAYS)
@pytest.mark.parametrize("host", BOTH)
def test_a_retriever_without_scores_may_stand_behind_the_gate(
    retriever: CAUSRetriever, host: Host, ask: Ask
) -> None:
    """What it finds is embedded, by its own model, and decided about as with scores."""
    silent = retriever.model_copy(update={"include_scores": False})
    fitted = host.from_retriever(retriever)
    for gated in (host.from_retriever(silent), host(retriever=silent, gate=fitted.gate)):
        assert found(ask(gated, OUTSIDE)) == []
        through, plain = found(ask(gated, INSIDE))[0], found(ask(fitted, INSIDE))[0]
        assert (through.id, {*through.metadata["posrag"]}) == (plain.id, {"retrieval"})
        told = [each.metadata["posrag"]["retrieval"]["similarity"] for each in (through, plain)]
        assert told[0] == pytest.approx(told[1], abs=1e-6)


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("ask", [*WAYS, batched])
def test_a_call_configures_the_retriever(retriever: CAUSRetriever, host: Host, ask: Ask) -> None:
    """As it does without the gate, in whatever it is wrapped; a chain hands the setting on."""
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    gated = host.from_retriever(configurable, WORDS, DOCUMENTS)
    assert [each.id for each in gated.config_specs] == ["k"]
    config: RunnableConfig = {"configurable": {"k": 1}}
    for asked in (gated, RunnableLambda(str) | gated, gated.with_config(configurable={"k": 2})):
        assert len(found(ask(asked, INSIDE, config))) == 1
    assert len(found(ask(gated, INSIDE))) == 3
    bound = retriever.with_config(tags=["mine"]).bind(k=1)
    assert len(found(ask(host.from_retriever(bound), INSIDE))) == 1, "the index is known below it"
    piped = retriever.with_retry() | PlacementTransformer("sequential")
    assert len(found(ask(host.from_retriever(piped, WORDS, DOCUMENTS), INSIDE))) == 3


def test_a_question_is_a_text_and_an_option_known(gate: ContextAwarenessGate) -> None:
    """A dict belongs behind an itemgetter."""
    question: Any = {"question": INSIDE}
    for host in (gate, GatedRetriever(retriever=gate.retriever, gate=gate.gate)):
        for ask in WAYS:
            with pytest.raises(ValueError, match=r"got {'question': .* itemgetter\(\"question\"\)"):
                ask(host, question)
    with pytest.raises(ValueError, match="kk"):
        GatedRetriever(retriever=gate.retriever, gate=gate.gate, kk=1)
