"""Both hosts of the gate: a Runnable that writes the prompt, a retriever that may keep still."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import RetrieverLike
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
from shared_core.gating import GatedPrompts
from tests.adapters.drivers import LangChainModel
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed

from .test_tracing import Tracer

Ask = Callable[..., Any]
Host = type[ContextAwarenessGate] | type[GatedRetriever]
Wrap = Callable[[CAUSRetriever], RetrieverLike]


BOTH: list[Host] = [ContextAwarenessGate, GatedRetriever]


def documents() -> list[Document]:
    return [
        Document(text, id=id, metadata={"even": number % 2 == 0, "posrag": "the user's own"})
        for number, (id, text) in enumerate(zip(IDS, PASSAGES, strict=True))
    ]


@pytest.fixture
def words() -> LangChainModel:
    return LangChainModel(embed)


@pytest.fixture
def retriever(words: LangChainModel) -> CAUSRetriever:
    return CAUSRetriever.from_documents(documents(), words, k=3)


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
    """Also where no document carries it. Tags and metadata are inherited, a name is not; an error
    ends every run."""
    gate, tracer = host.from_retriever(retriever), Tracer()
    config = {"callbacks": [tracer], "run_name": "mine", "tags": ["a"], "metadata": {"b": 1}}
    for question in (INSIDE, OUTSIDE):
        ask(gate, question, config)
    for root, retrieve in zip(tracer.roots, (True, False), strict=True):
        (decision,) = root.child_runs
        (below,) = decision.child_runs
        assert [each.name for each in (root, decision, below)] == [
            *("mine", "retrieve_or_not", "CAUSRetriever")
        ]
        assert decision.outputs is not None
        assert decision.outputs["retrieve"] is retrieve
        for run in (root, decision, below):
            assert run.tags == ["a"]
            assert (run.extra or {})["metadata"]["b"] == 1
    with pytest.raises(ValueError, match="the query is blank"):
        ask(gate, " ", config)
    failed = tracer.roots[-1]
    assert all("blank" in (run.error or "") for run in (failed, *failed.child_runs))


class Open(AsyncCallbackHandler):
    """Knows which runs have neither ended nor failed."""

    def __init__(self) -> None:
        self.names: dict[Any, str] = {}

    async def on_chain_start(self, *args: Any, run_id: Any, name: Any, **kwargs: Any) -> None:
        self.names[run_id] = name

    async def on_chain_error(self, *args: Any, run_id: Any, **kwargs: Any) -> None:
        del self.names[run_id]


@pytest.mark.parametrize("host", BOTH)
async def test_cancelled_no_run_stays_open(retriever: CAUSRetriever, host: Host) -> None:
    """While it embeds what a retriever without scores has found."""

    class Hanging(LangChainModel):
        async def aembed_query(self, text: str) -> list[float]:
            asked.set()
            return await asyncio.Event().wait() or []

    asked, handler = asyncio.Event(), Open()
    silent = retriever.model_copy(update={"include_scores": False})
    gate = host(
        retriever=silent, gate=host.from_retriever(retriever).gate, embeddings=Hanging(embed)
    )
    task = asyncio.create_task(gate.ainvoke(INSIDE, {"callbacks": [handler]}))
    await asked.wait()
    assert "retrieve_or_not" in handler.names.values()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handler.names == {}


@pytest.mark.parametrize("ask", [*WAYS, batched])
def test_the_retriever_finds_what_the_one_behind_it_finds_or_nothing(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """Copies of it, with the decision; the explanation so far stays."""
    gated = GatedRetriever.from_retriever(retriever)
    plain, through = retriever.invoke(INSIDE), ask(gated, INSIDE)
    assert [each.id for each in through] == [each.id for each in plain]
    why = through[0].metadata["posrag"].pop("retrieval")
    assert why["retrieve"] is True
    assert through[0] == plain[0]
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
        through, plain = found(ask(gated, INSIDE)), found(ask(fitted, INSIDE))
        assert [each.id for each in through] == [each.id for each in plain]
        assert {*through[0].metadata["posrag"]} == {"retrieval"}
        told = [each[0].metadata["posrag"]["retrieval"]["similarity"] for each in (through, plain)]
        assert told[0] == pytest.approx(told[1], abs=1e-6)


RETRIEVERS: dict[str, Wrap] = {
    "retry": lambda retriever: retriever.with_retry(),
    "pipe": lambda retriever: retriever | PlacementTransformer("sequential"),
    "fallbacks": lambda retriever: retriever.with_fallbacks([retriever]),
    "ensemble": lambda retriever: EnsembleRetriever(retrievers=[retriever], weights=[1.0]),
}


@pytest.mark.parametrize("wrap", RETRIEVERS.values(), ids=RETRIEVERS)
@pytest.mark.parametrize("ask", [*WAYS, batched])
def test_whatever_retrieves_may_stand_behind_the_gate(wrap: Wrap, ask: Ask) -> None:
    """It is decided as about the bare one, and nothing is embedded twice."""
    embedded: list[str] = []

    def noted(text: str) -> list[float]:
        embedded.append(text)
        return embed(text)

    words = LangChainModel(noted)
    retriever = CAUSRetriever.from_documents(documents(), words, k=3)
    gate = ContextAwarenessGate.from_retriever(retriever, words, documents())
    gated = ContextAwarenessGate.from_retriever(wrap(retriever), words, documents())
    one = ask(gate, INSIDE)
    embedded.clear()
    other = ask(gated, INSIDE)
    assert {*embedded} <= {INSIDE, OUTSIDE}
    assert [each.id for each in other.documents] == [each.id for each in one.documents]
    assert other.decision == one.decision


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("ask", [*WAYS, batched])
def test_a_call_configures_the_retriever(
    retriever: CAUSRetriever, words: LangChainModel, host: Host, ask: Ask
) -> None:
    """As it does without the gate; and a chain around the gate hands the setting on."""
    configurable = retriever.configurable_fields(k=ConfigurableField(id="k"))
    gated = host.from_retriever(configurable, words, documents())
    assert [each.id for each in gated.config_specs] == ["k"]
    config: RunnableConfig = {"configurable": {"k": 1}}
    for asked in (gated, RunnableLambda(str) | gated, gated.with_config(configurable={"k": 2})):
        assert len(found(ask(asked, INSIDE, config))) == 1
    assert len(found(ask(gated, INSIDE))) == 3
    bound = retriever.with_config(tags=["mine"]).bind(k=1)
    assert len(found(ask(host.from_retriever(bound), INSIDE))) == 1, "the index is known below it"


class Scanned(Document):
    """A document of the user's own class."""

    page: int = 0


@pytest.mark.parametrize("include_scores", [True, False])
def test_documents_stay_the_users(words: LangChainModel, include_scores: bool) -> None:
    """Copies, of their class, with their own keys of our names; those of the user are untouched."""
    own = {"score": 7, "posrag": {"mine": [1]}}
    mine: list[Document] = [
        Scanned(page_content=text, page=5, metadata=copy.deepcopy(own)) for text in PASSAGES
    ]

    def hand_out(question: str) -> list[Document]:
        return mine

    before = copy.deepcopy(mine)
    gated = GatedRetriever.from_retriever(
        RunnableLambda(hand_out), words, mine, include_scores=include_scores
    )
    through = gated.invoke(INSIDE)
    assert all(isinstance(each, Scanned) and each.page == 5 for each in through)
    for each in through:
        told = each.metadata["posrag"].pop("retrieval", None)
        assert (told is not None) is include_scores
    assert through == mine
    through[0].metadata["posrag"]["mine"] = 2
    through[0].metadata["score"] = 8
    assert mine == before


def test_without_scores_nothing_of_ours_stays(retriever: CAUSRetriever, tmp_path: Path) -> None:
    """Neither a score of the search nor that of a slot; it is no part of what is saved."""
    GatedRetriever.from_retriever(retriever).gate.save(tmp_path / "gate")
    for behind in (retriever, retriever | PlacementTransformer("sequential")):
        gated = GatedRetriever.load(
            tmp_path / "gate", behind, LangChainModel(embed), include_scores=False
        )
        assert {*gated.invoke(INSIDE)[0].metadata} == {"even"}


def test_a_prompt_serialises_under_its_own_name(gate: ContextAwarenessGate) -> None:
    """As traces do it."""
    assert dumpd(gate.invoke(OUTSIDE))["id"] == ["langchain_posrag", "gating", "GatedPrompt"]


def test_a_question_is_a_text_and_an_option_known(
    retriever: CAUSRetriever, gate: ContextAwarenessGate
) -> None:
    """A dict belongs behind an itemgetter."""
    question: Any = {"question": INSIDE}
    for host in (gate, GatedRetriever(retriever=gate.retriever, gate=gate.gate)):
        with pytest.raises(ValueError, match="the question must be a string, got dict"):
            host.invoke(question)
    with pytest.raises(ValueError, match="kk"):
        GatedRetriever(retriever=gate.retriever, gate=gate.gate, kk=1)
    with pytest.raises(ValueError, match="prompts"):
        GatedRetriever.from_retriever(retriever, prompts=GatedPrompts())
    raw: Any = lambda query: []  # noqa: E731
    with pytest.raises(ValueError, match="instance of Runnable"):
        GatedRetriever(retriever=raw, gate=gate.gate)
