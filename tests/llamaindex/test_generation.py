"""Models of LlamaIndex as generators: completed or chatted with, as their metadata say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock, ThinkingBlock
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback

from llamaindex_posrag import LlamaIndexModel
from shared_core.errors import GenerationError
from tests.langchain.openai_server import OpenAIServer, Reply

from .openai_llm import OpenAIChat


class Chatting(OpenAIChat):
    """A chat model that thinks first, and refuses to complete."""

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        (message,) = messages
        thought = ThinkingBlock(content="hm")
        said = [TextBlock(text=f"{message.role.value} said {message.content}")]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[thought, *said]))


def test_a_chat_model_is_sent_one_user_message() -> None:
    """And its thoughts are left out, so that they are not graded with the answer."""
    assert LlamaIndexModel(Chatting(base_url="")).generate(["hello"]) == ["user said hello"]


def test_the_mock_of_the_framework_answers() -> None:
    """The model that LlamaIndex itself tests with, as a completion and as a chat model."""
    assert LlamaIndexModel(MockLLM(max_tokens=2)).generate(["a"]) == ["text text"]
    assert "a" in LlamaIndexModel(MockLLM(is_chat_model=True)).generate(["a"])[0]


def test_an_answer_that_a_filter_withheld_is_a_failure() -> None:
    """Over the wire: it would be graded as a wrong answer of the model."""
    with (
        OpenAIServer(lambda _: Reply(text=None, finish="content_filter")) as server,
        pytest.raises(GenerationError, match="a content filter withheld the answer of tiny"),
    ):
        LlamaIndexModel(OpenAIChat(base_url=server.url)).generate(["x"])


def test_a_model_goes_by_its_own_name() -> None:
    """Its profile is saved under that name; "unknown" would be shared by all."""
    assert LlamaIndexModel(OpenAIChat(base_url="")).name == "tiny"
    assert LlamaIndexModel(MockLLM()).name == "MockLLM"
    assert LlamaIndexModel(MockLLM(), name="mine").name == "mine"
