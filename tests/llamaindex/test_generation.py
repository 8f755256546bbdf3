"""Models of LlamaIndex as generators: completed or chatted with, as their metadata say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
)
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback

from llamaindex_posrag import LlamaIndexModel
from tests.adapters.test_generation import Completing


class Chatting(Completing):
    """A chat model that thinks first, and cannot complete."""

    function: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="tiny", is_chat_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        (message,) = messages
        thought = ThinkingBlock(content="hm")
        said = [TextBlock(text=f"{message.role.value} said {message.content}")]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[thought, *said]))


def test_a_chat_model_is_sent_one_user_message() -> None:
    """And its thoughts are left out, so that they are not graded with the answer."""
    assert LlamaIndexModel(Chatting()).generate(["hello"]) == ["user said hello"]


def test_a_model_goes_by_its_own_name() -> None:
    """Its profile is saved under that name; "unknown" would be shared by all."""
    assert LlamaIndexModel(Chatting()).name == "tiny"
    assert LlamaIndexModel(MockLLM()).name == "MockLLM"
    assert LlamaIndexModel(MockLLM(), name="mine").name == "mine"
