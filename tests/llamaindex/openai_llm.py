"""A chat model of LlamaIndex behind OpenAI's protocol, over the real client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openai
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import CustomLLM


class OpenAIChat(CustomLLM):
    """As much of llama-index-llms-openai as the tests need."""

    base_url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="tiny", is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        client = openai.OpenAI(base_url=self.base_url, api_key="none", max_retries=0)
        sent: Any = [{"role": each.role.value, "content": each.content} for each in messages]
        done = client.chat.completions.create(model="tiny", messages=sent)
        answer = ChatMessage(role="assistant", content=done.choices[0].message.content)
        return ChatResponse(message=answer, raw=done)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise AssertionError("a chat model was asked to complete")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise AssertionError("a chat model was asked to complete")
