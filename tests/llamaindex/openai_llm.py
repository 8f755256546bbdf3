"""A chat model of LlamaIndex behind OpenAI's protocol, over the real client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openai
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
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
        done = client.chat.completions.create(model="tiny", messages=_sent(messages))
        return _response(done.choices[0].message.content, raw=done)

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        client = openai.OpenAI(base_url=self.base_url, api_key="none", max_retries=0)
        chunks = client.chat.completions.create(model="tiny", messages=_sent(messages), stream=True)
        return (_response(chunk.choices[0].delta.content) for chunk in chunks)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        client = openai.AsyncOpenAI(base_url=self.base_url, api_key="none", max_retries=0)
        done = await client.chat.completions.create(model="tiny", messages=_sent(messages))
        return _response(done.choices[0].message.content)

    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        client = openai.AsyncOpenAI(base_url=self.base_url, api_key="none", max_retries=0)

        async def stream() -> ChatResponseAsyncGen:
            chunks = await client.chat.completions.create(
                model="tiny", messages=_sent(messages), stream=True
            )
            async for chunk in chunks:
                yield _response(chunk.choices[0].delta.content)

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raise AssertionError("a chat model was asked to complete")

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise AssertionError("a chat model was asked to complete")


def _sent(messages: Sequence[ChatMessage]) -> Any:
    return [{"role": each.role.value, "content": each.content} for each in messages]


def _response(text: str | None, raw: object = None) -> ChatResponse:
    message = ChatMessage(role="assistant", content=text)
    return ChatResponse(message=message, delta=text, raw=raw)
