"""Both hosts of the gate: a Runnable that writes the prompt, a retriever that may keep still."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import RetrieversIntegrationTests

from langchain_posrag import CAUSRetriever, ContextAwarenessGate, GatedRetriever
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import GatedPrompts
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed
from tests.langchain.openai_server import OpenAIServer, Request
from tests.langchain.test_tracing import Tracer

Ask = Callable[[Runnable[str, Any], str], Any]


class Words(Embeddings):
    """Counts what it is asked to embed; `salt` makes it another model."""

    def __init__(self, salt: str = "") -> None:
        self.salt = salt
        self.queries: list[str] = []
        self.passages = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.passages += len(texts)
        return [embed(self.salted(text)) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return embed(self.salted(text))

    def salted(self, text: str) -> str:
        return " ".join(word + self.salt for word in text.split())


def documents() -> list[Document]:
    return [
        Document(text, id=id, metadata={"even": number % 2 == 0, "posrag": "the user's own"})
        for number, (id, text) in enumerate(zip(IDS, PASSAGES, strict=True))
    ]


@pytest.fixture
def words() -> Words:
    return Words()


@pytest.fixture
def retriever(words: Words) -> CAUSRetriever:
    return CAUSRetriever.from_documents(documents(), words, k=3)


@pytest.fixture
def gate(retriever: CAUSRetriever) -> ContextAwarenessGate:
    return ContextAwarenessGate.from_retriever(retriever)


def invoked(asked: Runnable[str, Any], question: str) -> Any:
    return asked.invoke(question)


def awaited(asked: Runnable[str, Any], question: str) -> Any:
    return asyncio.run(asked.ainvoke(question))


def batched(asked: Runnable[str, Any], question: str) -> Any:
    return asked.batch(["dough", question])[1]


def streamed(asked: Runnable[str, Any], question: str) -> Any:
    first, *rest = asked.stream(question)
    for part in rest:
        first += part
    return first


def streamed_asynchronously(asked: Runnable[str, Any], question: str) -> Any:
    async def collect() -> list[Any]:
        return [part async for part in asked.astream(question)]

    first, *rest = asyncio.run(collect())
    for part in rest:
        first += part
    return first


WAYS = [invoked, awaited, batched, streamed, streamed_asynchronously]


@pytest.mark.parametrize("ask", WAYS)
def test_a_question_inside_is_asked_with_context_and_one_outside_without(
    gate: ContextAwarenessGate, ask: Ask
) -> None:
    """In every way a Runnable can be asked; the decision comes along."""
    inside, outside = ask(gate, INSIDE), ask(gate, OUTSIDE)
    assert PASSAGES[4] in inside.text
    assert INSIDE in inside.text
    assert inside.decision["retrieve"] is True
    assert inside.documents[0].id == "p4"
    assert inside.documents[0].metadata["posrag"]["retrieval"] == inside.decision
    assert "Think step by step" in outside.text
    assert OUTSIDE in outside.text
    assert outside.documents == []
    assert outside.decision["retrieve"] is False
    assert "answer without context" in outside.decision["reason"]


@pytest.mark.parametrize("ask", WAYS)
def test_a_model_behind_the_gate_answers_both(gate: ContextAwarenessGate, ask: Ask) -> None:
    """And the decision passes through the chain beside the answer."""
    model = FakeListChatModel(responses=["an answer"])
    chain = gate | {"answer": model | StrOutputParser(), "prompt": RunnablePassthrough()}
    for question in (INSIDE, OUTSIDE):
        assert str(ask(gate | model, question).content) == "an answer"
    if ask in (invoked, awaited):
        assert ask(chain, OUTSIDE)["prompt"].decision["retrieve"] is False


def test_a_chain_streams_word_by_word(gate: ContextAwarenessGate) -> None:
    """The gate does not hold the model's tokens back."""
    chain = gate | FakeListChatModel(responses=["abc"])
    assert [part.content for part in chain.stream(OUTSIDE)][:3] == ["a", "b", "c"]


@pytest.mark.parametrize("ask", WAYS)
def test_a_server_answers_both(
    gate: ContextAwarenessGate, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over OpenAI's protocol, on a real connection."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def answer(request: Request) -> str:
        return "from the context" if "Context:" in request.prompt else "from what it knows"

    for question, expected in ((INSIDE, "from the context"), (OUTSIDE, "from what it knows")):
        with OpenAIServer(answer) as server:
            model = ChatOpenAI(model="tiny", base_url=server.url, api_key="none", max_retries=0)
            assert ask(gate | model, question).content == expected


@pytest.mark.parametrize("ask", [invoked, awaited])
def test_a_trace_shows_the_decision(gate: ContextAwarenessGate, ask: Ask) -> None:
    """Below the gate's run, and the retriever's own run below the decision."""
    for question, retrieve in ((INSIDE, True), (OUTSIDE, False)):
        tracer = Tracer()
        prompt = ask(gate.with_config(callbacks=[tracer]), question)
        (root,) = tracer.roots
        (run,) = root.child_runs
        assert run.name == "retrieve_or_not"
        assert run.outputs == prompt.decision
        assert run.outputs["retrieve"] is retrieve
        assert [child.run_type for child in run.child_runs] == ["retriever"]


@pytest.mark.parametrize("ask", [invoked, awaited])
def test_a_trace_of_the_retriever_shows_the_decision(gate: ContextAwarenessGate, ask: Ask) -> None:
    """Where there is no document to carry it, that is where it is."""
    tracer = Tracer()
    gated = GatedRetriever(retriever=gate.retriever, gate=gate.gate)
    assert ask(gated.with_config(callbacks=[tracer]), OUTSIDE) == []
    (root,) = tracer.roots
    assert root.run_type == "retriever"
    assert root.child_runs[0].outputs == gate.invoke(OUTSIDE).decision


@pytest.mark.parametrize("ask", [invoked, awaited])
def test_an_error_ends_every_run(gate: ContextAwarenessGate, ask: Ask) -> None:
    """No run stays open."""
    tracer = Tracer()
    with pytest.raises(ValueError, match="the query is blank"):
        ask(gate.with_config(callbacks=[tracer]), " ")
    (root,) = tracer.roots
    assert all("blank" in (run.error or "") for run in (root, *root.child_runs))


@pytest.mark.parametrize("ask", WAYS[:4])
def test_the_retriever_finds_what_the_one_behind_it_finds_or_nothing(
    retriever: CAUSRetriever, ask: Ask
) -> None:
    """Copies of it, with the decision; the explanation so far stays."""
    gated = GatedRetriever.from_retriever(retriever)
    plain, found = retriever.invoke(INSIDE), ask(gated, INSIDE)
    assert [each.id for each in found] == [each.id for each in plain]
    why = found[0].metadata["posrag"].pop("retrieval")
    assert why["retrieve"] is True
    assert found[0] == plain[0]
    assert ask(gated, OUTSIDE) == []


def test_a_call_sets_k_and_filter(retriever: CAUSRetriever) -> None:
    """For the retriever behind the gate; what it does not know is refused."""
    gated = GatedRetriever.from_retriever(retriever)
    assert len(gated.invoke(INSIDE, k=1)) == 1
    assert all(each.metadata["even"] for each in gated.invoke(INSIDE, filter={"even": True}))
    assert gated.invoke(INSIDE, filter={"even": None}) == [], "nothing passes: nothing to retrieve"
    gate = ContextAwarenessGate(retriever=retriever, gate=gated.gate)
    assert len(gate.invoke(INSIDE, k=1).documents) == 1
    with pytest.raises(TypeError, match="kk"):
        gated.invoke(INSIDE, kk=1)


def test_the_nearest_passage_counts_though_it_is_not_among_the_best(words: Words) -> None:
    """The words alone rank here, and the one passage they find is not the nearest."""
    query = "a starter for honey: honey, honey and flour"
    retriever = CAUSRetriever.from_documents(documents(), words, k=1, alpha=0.0)
    cosines = np.array(words.embed_documents(PASSAGES)) @ embed(query)
    gate = ContextAwarenessGate.from_retriever(retriever, policy="minimum", threshold=-1.0)
    prompt = gate.invoke(query)
    assert prompt.documents[0].id != IDS[int(cosines.argmax())], "or this test shows nothing"
    assert prompt.decision["similarity"] == pytest.approx(cosines.max())


def test_nothing_is_embedded_twice(retriever: CAUSRetriever, words: Words) -> None:
    """The index tells the cosines; and fitting takes its vectors as they are."""
    indexed = words.passages
    gate = ContextAwarenessGate.from_retriever(retriever)
    fitted = words.passages
    assert fitted - indexed < len(PASSAGES) + 100, "key phrases and everyday questions alone"
    words.queries.clear()
    gate.invoke(INSIDE)
    assert (words.queries, words.passages) == ([INSIDE], fitted)


@pytest.mark.parametrize("ask", [invoked, awaited])
def test_any_other_retriever_has_its_finds_embedded(
    gate: ContextAwarenessGate, words: Words, ask: Ask
) -> None:
    """And comes to the same decision; without a model it says what is missing."""
    store = InMemoryVectorStore.from_documents(documents(), words)
    other: BaseRetriever = store.as_retriever(search_kwargs={"k": 3})
    gated = ContextAwarenessGate.from_retriever(other, words, documents())
    for question in (INSIDE, OUTSIDE):
        one, two = ask(gate, question).decision, ask(gated, question).decision
        assert two["retrieve"] == one["retrieve"]
        assert two["similarity"] == pytest.approx(one["similarity"], abs=1e-6)
    document = ask(gated, INSIDE).documents[0]
    assert document.metadata["posrag"]["retrieval"]["retrieve"] is True
    with pytest.raises(
        ValueError, match="VectorStoreRetriever has no embeddings: give embeddings="
    ):
        ask(ContextAwarenessGate(retriever=other, gate=gate.gate), INSIDE)
    with pytest.raises(ValueError, match=r"has no embeddings: give embeddings="):
        ContextAwarenessGate.from_retriever(other)
    with pytest.raises(ValueError, match=r"does not expose its documents: give contexts="):
        ContextAwarenessGate.from_retriever(other, words)


def test_a_vector_store_behind_the_retriever_of_ours(words: Words) -> None:
    """Its raw scores may be anything, so they are not taken for cosines."""
    store = InMemoryVectorStore.from_documents(documents(), words)
    fused = CAUSRetriever.from_vectorstore(store, documents(), higher_is_better=True, k=5)
    gate = ContextAwarenessGate.from_retriever(fused, words, documents())
    before = words.passages
    assert gate.invoke(INSIDE).decision["retrieve"] is True
    assert words.passages == before + 5


def test_the_users_documents_stay_as_they_were(words: Words) -> None:
    """A store hands out its own; so the decision goes into copies, down to the user's lists."""
    mine = [
        Document(each.page_content, id=each.id, metadata={"tags": ["own"], "posrag": {"mine": 1}})
        for each in documents()
    ]

    class Own(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return mine

    before = copy.deepcopy(mine)
    found = GatedRetriever.from_retriever(Own(), words, mine).invoke(INSIDE)
    assert found[0].metadata["posrag"]["retrieval"]["retrieve"] is True
    assert found[0].metadata["posrag"]["mine"] == 1
    found[0].metadata["tags"].append("changed")
    found[0].metadata["posrag"]["mine"] = 2
    assert mine == before


def test_a_transform_changes_what_is_searched_and_not_what_is_asked(
    retriever: CAUSRetriever,
) -> None:
    """A rewritten query finds; the model is asked the person's own question."""
    gate = ContextAwarenessGate.from_retriever(
        retriever, transform=lambda query: INSIDE if query == "what about it?" else query
    )
    prompt = gate.invoke("what about it?")
    assert prompt.documents[0].id == "p4"
    assert (prompt.question, INSIDE in prompt.text) == ("what about it?", False)


def test_prompts_pseudo_queries_and_words_are_the_callers(retriever: CAUSRetriever) -> None:
    """Each reaches what it is for."""
    prompts = GatedPrompts(direct="Just say: {question}")
    pairs = [(id, text.split(",")[0]) for id, text in zip(IDS, PASSAGES, strict=True)]
    gate = ContextAwarenessGate.from_retriever(
        retriever, prompts=prompts, pseudo_queries=pairs, coverage=True, policy="calibrated"
    )
    assert gate.invoke(OUTSIDE).text == f"Just say: {OUTSIDE}"
    assert "of its words there" in gate.invoke(INSIDE).decision["reason"]
    assert gate.gate.candidates.similarities.size == len(pairs)


def test_llama_index_wrapping_is_taken_off(gate: ContextAwarenessGate) -> None:
    """A tool of the other framework may be what asks."""
    assert gate.invoke(f"\ninput is {INSIDE}\n").text == gate.invoke(INSIDE).text


def test_a_prompt_serialises_under_its_own_name(gate: ContextAwarenessGate) -> None:
    """As traces do it."""
    assert dumpd(gate.invoke(OUTSIDE))["id"] == ["langchain_posrag", "gating", "GatedPrompt"]


def test_an_empty_index_is_answered_without_context(
    gate: ContextAwarenessGate, words: Words
) -> None:
    """Everything was deleted since the fit; and there is nothing to fit on from the start."""
    empty = CAUSRetriever.from_documents([], words)
    prompt = ContextAwarenessGate(retriever=empty, gate=gate.gate).invoke(INSIDE)
    assert prompt.decision["reason"].startswith("there is no passage to retrieve")
    assert "Think step by step" in prompt.text
    with pytest.raises(ValueError, match="needs at least 10 pseudo-queries, got 0"):
        ContextAwarenessGate.from_retriever(empty)


def test_another_embedding_model_is_refused(
    gate: ContextAwarenessGate, retriever: CAUSRetriever, tmp_path: Path
) -> None:
    """By the fit's own fingerprint; the model of the fit is taken."""
    gate.gate.save(tmp_path / "gate")
    again = ContextAwarenessGate.load(tmp_path / "gate", retriever)
    assert again.invoke(INSIDE).decision == gate.invoke(INSIDE).decision
    other = CAUSRetriever.from_documents(documents(), Words(salt="x"))
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        GatedRetriever.load(tmp_path / "gate", other)
    bare = InMemoryVectorStore(Words()).as_retriever()
    with pytest.raises(ValueError, match="has no embeddings: give embeddings="):
        GatedRetriever.load(tmp_path / "gate", bare)
    with pytest.raises(EmbeddingMismatchError, match="not the one the index was built with"):
        ContextAwarenessGate.from_retriever(retriever, Words(salt="x"))
    assert ContextAwarenessGate.from_retriever(retriever, Words()).gate.candidates.levels == (
        gate.gate.candidates.levels
    )


@pytest.mark.parametrize(
    "fit", [{"coverage": True}, {"negatives": [OUTSIDE, "tides"] * 5}], ids=str
)
def test_a_gate_decides_after_loading_as_before(
    retriever: CAUSRetriever, fit: dict[str, Any], tmp_path: Path
) -> None:
    """With the words that were counted, and negatives of one's own."""
    gate = ContextAwarenessGate.from_retriever(retriever, **fit)
    gate.gate.save(tmp_path / "gate")
    again = ContextAwarenessGate.load(tmp_path / "gate", retriever)
    for question in (INSIDE, OUTSIDE, *PASSAGES):
        assert again.invoke(question).decision == gate.invoke(question).decision
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        GatedRetriever.load(tmp_path / "gate", retriever, Words(salt="x"))


@pytest.mark.parametrize("host", [ContextAwarenessGate, GatedRetriever])
def test_functions_that_are_not_saved_are_given_again(
    retriever: CAUSRetriever, host: type[ContextAwarenessGate | GatedRetriever], tmp_path: Path
) -> None:
    """The error names them, and they are taken."""
    made = host.from_retriever(retriever, transform=str.lower, coverage=True, tokenizer=str.split)
    made.gate.save(tmp_path / "gate")
    with pytest.raises(ValueError, match="give transform="):
        host.load(tmp_path / "gate", retriever, tokenizer=str.split)
    with pytest.raises(ValueError, match="give it as tokenizer="):
        host.load(tmp_path / "gate", retriever, transform=str.lower)
    again = host.load(tmp_path / "gate", retriever, transform=str.lower, tokenizer=str.split)
    assert again.gate.transform is str.lower
    assert again.gate.coverage is not None
    assert again.gate.coverage.tokenizer is str.split


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda host: host.model_copy(deep=True),
    "pickle": lambda host: pickle.loads(pickle.dumps(host)),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("host", [ContextAwarenessGate, GatedRetriever])
def test_a_copy_of_a_host_answers_as_it_does(
    retriever: CAUSRetriever, host: Any, copied: Callable[[Any], Any]
) -> None:
    made = host.from_retriever(retriever, coverage=True)
    again = copied(made)
    for question in (INSIDE, OUTSIDE):
        assert again.invoke(question) == made.invoke(question)


def test_prompts_of_one_s_own_are_taken_and_checked(
    gate: ContextAwarenessGate, retriever: CAUSRetriever, tmp_path: Path
) -> None:
    """When a gate is fitted, and when one is loaded."""
    gate.gate.save(tmp_path / "gate")
    prompts = GatedPrompts(direct="Plainly: {question}")
    given: Any = "x"
    again = ContextAwarenessGate.load(tmp_path / "gate", retriever, prompts=prompts)
    assert again.invoke(OUTSIDE).text == f"Plainly: {OUTSIDE}"
    assert ContextAwarenessGate.load(tmp_path / "gate", retriever).prompts == GatedPrompts()
    with pytest.raises(ValueError, match="prompts"):
        ContextAwarenessGate.load(tmp_path / "gate", retriever, prompts=given)
    with pytest.raises(ValueError, match="prompts"):
        ContextAwarenessGate.from_retriever(retriever, prompts=given)


def test_a_similarity_that_is_not_a_number_is_refused(
    gate: ContextAwarenessGate, words: Words
) -> None:
    """Rather than read as "outside"."""

    class Broken(Words):
        def embed_query(self, text: str) -> list[float]:
            return [math.nan] * len(embed(text))

    store = InMemoryVectorStore.from_documents(documents(), words)
    broken = ContextAwarenessGate(
        retriever=store.as_retriever(), gate=gate.gate, embeddings=Broken()
    )
    with pytest.raises(ValueError, match="the query: vector 0 holds a value that is not finite"):
        broken.invoke(INSIDE)


@pytest.mark.parametrize("question", [None, 7, {"question": INSIDE}])
def test_a_question_is_a_text(gate: ContextAwarenessGate, question: Any) -> None:
    """A dict belongs behind an itemgetter."""
    gated = GatedRetriever(retriever=gate.retriever, gate=gate.gate)
    for host in (gate, gated):
        with pytest.raises(ValueError, match="the question must be a string, got"):
            host.invoke(question)


def test_options_are_checked(gate: ContextAwarenessGate, retriever: CAUSRetriever) -> None:
    """As pydantic checks them."""
    with pytest.raises(ValueError, match="kk"):
        GatedRetriever(retriever=retriever, gate=gate.gate, kk=1)


class TestStandard(RetrieversIntegrationTests):
    """LangChain's own suite, with a gate that is always open."""

    @property
    def retriever_constructor(self) -> type[GatedRetriever]:
        return Open

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {}

    @property
    def retriever_query_example(self) -> str:
        return INSIDE


class Open(GatedRetriever):
    """Over our own retriever, with `k` as the suite gives it."""

    def __init__(self, **options: Any) -> None:
        retriever = CAUSRetriever.from_documents(documents(), Words(), **options)
        fitted = GatedRetriever.from_retriever(retriever, policy="minimum", threshold=-1.0)
        super().__init__(retriever=retriever, gate=fitted.gate)
