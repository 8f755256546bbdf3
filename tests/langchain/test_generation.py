"""Models of LangChain as generators: any chain, and OpenAI's protocol over a real connection."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import FakeListChatModel, FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI

from langchain_posrag.generation import LangChainModel, openai_endpoint
from shared_core.cli.models import open_reranker
from shared_core.errors import GenerationError, MissingExtraError
from tests.langchain.openai_server import OpenAIServer, Reply, Request

Answer = Callable[[Request], str | Reply]
Serve = Callable[[Answer], OpenAIServer]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no address and no proxy but what a test sets."""
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Open a server that answers as it is told, until the test ends."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(OpenAIServer(answer))


class LongestTwo(BaseDocumentCompressor):
    """As rerankers do: new documents, of which it drops some."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        ranked = sorted(documents, key=lambda each: -len(each.page_content) * len(query))
        return [Document(each.page_content, metadata=each.metadata) for each in ranked[:2]]


RERANKER = LongestTwo()
CHAIN: Runnable[str, str] = RunnableLambda(str.upper).with_retry()


def test_a_compressor_is_a_reranker_of_the_command() -> None:
    """Texts that it drops come last; a chain is none."""
    rerank = open_reranker(f"{__name__}:RERANKER")
    assert rerank is not None
    scores = rerank("q", ["bb", "a", "ccc", "bb"])
    assert sorted(range(4), key=lambda at: -scores[at]) == [2, 0, 1, 3]
    with pytest.raises(ValueError, match=r":CHAIN is not a reranker .* a LangChain compressor"):
        open_reranker(f"{__name__}:CHAIN")


def endpoint(server: OpenAIServer, **options: Any) -> LangChainModel:
    return openai_endpoint("tiny", base_url=server.url, **options)


def test_of_a_message_in_blocks_the_text_counts_and_the_reasoning_does_not() -> None:
    """An answer is graded; what a model thought on the way would be graded with it."""
    blocks: list[str | dict[Any, Any]] = [
        {"type": "reasoning", "reasoning": "the passage says Rome, or Paris"},
        {"type": "text", "text": "Pa"},
        {"type": "text", "text": "ris"},
    ]
    thinking = FakeMessagesListChatModel(
        responses=[AIMessage(content=blocks), AIMessage(content=blocks[:1])]
    )
    assert LangChainModel(thinking).generate(["capital?", "again"]) == ["Paris", ""]


def test_an_answer_that_is_no_text_is_refused_by_its_type() -> None:
    """A chain that ends in a structured output cannot be graded."""
    with pytest.raises(GenerationError, match=r"structured answered with dict.*StrOutputParser"):
        LangChainModel(RunnableLambda(lambda prompt: {"a": 1}), name="structured").generate(["x"])


class NamedInTraces(FakeListChatModel):
    """A chat model that keeps its name where only traces look, as some integrations do."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop=stop, **kwargs), "ls_model_name": "traced"}


GPT = ChatOpenAI(model="gpt-x", api_key="k")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (ChatPromptTemplate.from_template("{text}") | GPT.with_retry(), "gpt-x"),
        (NamedInTraces(responses=[]), "traced"),
        (RunnableLambda(str.upper), "RunnableLambda"),
    ],
)
def test_a_model_goes_by_its_own_name(model: Runnable[Any, Any], name: str) -> None:
    """Its profile is saved under that name; a chain has the name of the model in it."""
    assert LangChainModel(model).name == name


def test_an_answer_comes_over_the_wire(serve: Serve) -> None:
    """The whole protocol, with a text that is not ASCII in both directions."""
    server = serve(lambda request: f"«{request.prompt}» — 東京 🗼")
    model = endpoint(server, api_key="secret")
    assert model.generate(["Größe?", "naïve"]) == ["«Größe?» — 東京 🗼", "«naïve» — 東京 🗼"]
    first = server.requests[0]
    assert first.headers["authorization"] == "Bearer secret"
    assert (model.name, first.payload["model"], first.payload["temperature"]) == ("tiny", "tiny", 0)
    assert [message["role"] for message in first.payload["messages"]] == ["user"]


def test_an_error_of_the_server_comes_out_as_it_is(serve: Serve) -> None:
    """After one request: who asks knows how long to wait, and whether to try again."""
    replies = [Reply(text="slow down", status=429, headers={"Retry-After": "7"}), Reply(hang=True)]
    server = serve(lambda request: replies.pop(0))
    model = endpoint(server, timeout=0.5)
    with pytest.raises(openai.RateLimitError) as caught:
        model.generate(["x"])
    assert caught.value.response.headers["Retry-After"] == "7"
    with pytest.raises(openai.APITimeoutError):
        model.generate(["x"])
    assert len(server.requests) == 2


@pytest.mark.parametrize("body", [b'{"choices": [{"mess', b'{"choices": null}', b"{}", b"null"])
def test_a_body_that_is_no_completion_is_no_answer(serve: Serve, body: bytes) -> None:
    """An empty text would count as a wrong answer; and it is said which server was asked."""
    server = serve(lambda request: Reply(body=body))
    told = f"^the server at {server.url} answered with no chat completion"
    with pytest.raises(GenerationError, match=told):
        endpoint(server).generate(["x"])


def test_an_answer_that_was_withheld_or_refused_is_a_failure(serve: Serve) -> None:
    """It would be graded as a wrong answer; beside a text a refusal is none."""
    replies = [
        Reply(text=None, finish="content_filter"),
        Reply(text=None, refusal="I can't help."),
        Reply(finish="length"),
        Reply(text="Paris", refusal="no"),
    ]
    model = endpoint(serve(lambda request: replies.pop(0)))
    for told in (
        "a content filter withheld the answer of tiny",
        r"^tiny refused .*help\.\)$",
        r"^tiny gave no text within its limit.*--max-new",
    ):
        with pytest.raises(GenerationError, match=told):
            model.generate(["x"])
    assert model.generate(["x"]) == ["Paris"]


def test_a_server_of_ones_own_needs_no_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given by environment, its address is enough."""
    server = serve(lambda request: "fine")
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        with monkeypatch.context() as patch:
            patch.setenv(name, server.url)
            assert openai_endpoint("tiny").generate(["x"]) == ["fine"]


def test_without_key_and_address_the_way_out_is_named() -> None:
    """In one line, before anything is asked."""
    with pytest.raises(GenerationError, match=r"OPENAI_API_KEY.*base_url"):
        openai_endpoint("gpt-x")
    with pytest.raises(ValueError, match="timeout must be a positive number of seconds, got 0"):
        openai_endpoint("gpt-x", api_key="k", timeout=0)


def test_another_timeout_is_no_other_model() -> None:
    """What it answered within a shorter one is not asked again."""
    usual, longer, other = (
        openai_endpoint("gpt-x", api_key="k", timeout=timeout, max_tokens=most)
        for timeout, most in ((60, 64), (300, 64), (60, 65))
    )
    assert usual.fingerprint == longer.fingerprint == LangChainModel(usual.model).fingerprint
    assert usual.fingerprint != other.fingerprint
    assert longer.model.request_timeout == 300  # type: ignore[attr-defined]


def test_without_langchain_openai_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra of its own."""
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'posrag\[openai\]'"):
        openai_endpoint("gpt-x", api_key="k")
