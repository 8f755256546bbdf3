"""Models of LlamaIndex as generators: completed or chatted with, as their metadata say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LLMMetadata,
    TextBlock,
    ThinkingBlock,
)
from llama_index.core.llms import MockLLM
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from llamaindex_posrag import LlamaIndexModel
from shared_core.cli.models import open_reranker
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


class LongestTwo(BaseNodePostprocessor):
    """As rerankers do, it drops some."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        return sorted(nodes, key=lambda each: -len(each.text) * len(query_bundle.query_str))[:2]


RERANKER, MODEL = LongestTwo(), MockLLM()


def test_a_postprocessor_is_a_reranker_of_the_command() -> None:
    """Texts that it drops come last; a model is none."""
    rerank = open_reranker(f"{__name__}:RERANKER")
    assert rerank is not None
    scores = rerank("q", ["bb", "a", "ccc", "bb"])
    assert sorted(range(4), key=lambda at: -scores[at]) == [2, 0, 1, 3]
    with pytest.raises(ValueError, match=r":MODEL is not a reranker .* LlamaIndex postprocessor"):
        open_reranker(f"{__name__}:MODEL")


def test_a_model_goes_by_its_own_name() -> None:
    """Its profile is saved under that name; "unknown" would be shared by all."""
    assert LlamaIndexModel(Chatting()).name == "tiny"
    assert LlamaIndexModel(MockLLM()).name == "MockLLM"
    assert LlamaIndexModel(MockLLM(), name="mine").name == "mine"
