"""Models of LlamaIndex as generators: completed or chatted with, as their metadata say."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
)
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback

from llamaindex_posrag.generation import LlamaIndexModel
from shared_core.errors import GenerationError
from shared_core.generation import as_generator
from shared_core.generation.base import Generator, ScoringModel
from shared_core.generation.identity import model_identity
from tests.langchain.openai_server import OpenAIServer, Reply
from tests.llamaindex.openai_llm import OpenAIChat


class Shouting(CustomLLM):
    """A completion model, as small as LlamaIndex lets one be."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="shouting-1")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=prompt.upper())

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


class Chatting(Shouting):
    """A chat model that thinks first, and refuses to complete."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="chatting-1", is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        (message,) = messages
        thought = ThinkingBlock(content="hm")
        said = [TextBlock(text=f"{message.role.value} said {message.content}")]
        blocks = [thought, *said] if message.content else [thought]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise AssertionError("a chat model was asked to complete")


class Overloaded(Shouting):
    """A model whose server turns everything away."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise ConnectionError("try again later")


def test_a_completion_model_completes_each_prompt_in_order() -> None:
    """The prompt is the whole of what it sees, braces and all."""
    model = LlamaIndexModel(Shouting())
    assert isinstance(model, Generator)
    assert not isinstance(model, ScoringModel)
    assert model.generate(["is {this} öne?", "b"]) == ["IS {THIS} ÖNE?", "B"]
    assert model.generate([]) == []


def test_the_mock_of_the_framework_answers() -> None:
    """The model that LlamaIndex itself tests with, as a completion and as a chat model."""
    assert LlamaIndexModel(MockLLM(max_tokens=2)).generate(["a"]) == ["text text"]
    assert "a" in LlamaIndexModel(MockLLM(is_chat_model=True)).generate(["a"])[0]


def test_a_chat_model_is_sent_one_user_message() -> None:
    """And its thoughts are left out, so that they are not graded with the answer."""
    assert LlamaIndexModel(Chatting()).generate(["hello"]) == ["user said hello"]


def test_an_answer_without_text_is_empty() -> None:
    """Where nothing says why: a wrong answer, and no error."""
    assert LlamaIndexModel(Chatting()).generate([""]) == [""]


class Ending(Shouting):
    """A completion model whose raw response says why the answer ended."""

    raw: Any

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=prompt, raw=self.raw)


@pytest.mark.parametrize(
    "raw",
    [
        {"choices": [{"finish_reason": "length"}]},
        SimpleNamespace(choices=[SimpleNamespace(finish_reason="length")]),
        {"stop_reason": "max_tokens"},
    ],
)
def test_tokens_that_run_out_before_there_is_a_text_are_a_failure(raw: object) -> None:
    """As of a model that thinks first; a text that was cut off is an answer."""
    model = LlamaIndexModel(Ending(raw=raw))
    assert model.generate(["a te"]) == ["a te"]
    with pytest.raises(GenerationError, match=r"^shouting-1 gave no text within its limit of"):
        model.generate([""])


def test_an_answer_that_a_filter_withheld_is_a_failure() -> None:
    """Over the wire: it would be graded as a wrong answer of the model."""
    with (
        OpenAIServer(lambda _: Reply(text=None, finish="content_filter")) as server,
        pytest.raises(GenerationError, match="a content filter withheld the answer of tiny"),
    ):
        LlamaIndexModel(OpenAIChat(base_url=server.url)).generate(["x"])


def test_a_model_goes_by_its_own_name() -> None:
    """Its profile is saved under that name; "unknown" would be shared by all."""
    assert LlamaIndexModel(Shouting()).name == "shouting-1"
    assert LlamaIndexModel(MockLLM()).name == "MockLLM"
    assert LlamaIndexModel(Shouting(), name="mine").name == "mine"


def test_a_model_is_known_wherever_one_is_asked_for() -> None:
    """By the entry point; another name keeps its answers."""
    model = as_generator(Shouting())
    assert isinstance(model, LlamaIndexModel)
    renamed = as_generator(Shouting(), name="mine")
    assert renamed.name == "mine"
    assert model_identity(renamed) == model.identity


def test_an_error_of_the_model_comes_out_as_it_is() -> None:
    """Who asks knows by its class whether to try again."""
    with pytest.raises(ConnectionError, match="try again later"):
        LlamaIndexModel(Overloaded()).generate(["x"])


def test_what_is_no_model_of_the_framework_is_refused() -> None:
    """When it is given, not at the first question."""
    with pytest.raises(TypeError, match="LLM, got 'gpt-4o'"):
        LlamaIndexModel("gpt-4o")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="concurrency must be an integer >= 1, got 0"):
        LlamaIndexModel(Shouting(), concurrency=0)


def _formatter(template: str) -> Callable[[str], str]:
    def format_prompt(prompt: str) -> str:
        return template.format(prompt)

    return format_prompt


def test_a_model_is_another_one_with_another_function() -> None:
    """Its repr shows no more than the name; the same again is the same."""
    one, same, other = (
        LlamaIndexModel(MockLLM(completion_to_prompt=_formatter(text))).identity
        for text in ("say {}", "say {}", "shout {}")
    )
    assert one == same != other


def test_a_model_class_of_ones_own_counts_with_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LlamaIndex's own classes count by how they are set up."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = "from llama_index.core.llms import MockLLM\nSUFFIX = 'a'\nclass Mine(MockLLM): pass\n"
    found = []
    for text in (source, source, source.replace("'a'", "'bb'")):
        (tmp_path / "app_with_an_llm.py").write_text(text)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        sys.modules.pop("app_with_an_llm", None)
        app = importlib.import_module("app_with_an_llm")
        found.append(LlamaIndexModel(app.Mine()).identity)
    assert found[0] == found[1] != found[2]
