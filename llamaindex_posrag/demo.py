"""LlamaIndex in ``posrag demo``: its query engine, and the order in its prompt."""

from __future__ import annotations

from typing import Any

from llama_index.core import PromptHelper
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import TextNode

from llamaindex_posrag.retrievers import CAUSRetriever
from shared_core import Passage
from shared_core.demo import DemoTask, EmbedTexts, ids_in_prompt, mark

_ID = "id"
_AMPLE_WINDOW = 1_000_000


class FunctionEmbedding(BaseEmbedding):
    """A function from texts to vectors as an embedding model."""

    _embed: EmbedTexts = PrivateAttr()

    def __init__(self, embed: EmbedTexts) -> None:
        super().__init__(model_name="posrag-demo")
        self._embed = embed

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embed(texts).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def _node(passage: Passage) -> TextNode:
    """Return a node whose text comes after its mark in the prompt, and is embedded without it."""
    return TextNode(
        id_=passage.id,
        text=passage.text,
        metadata={_ID: passage.id},
        excluded_embed_metadata_keys=[_ID],
        metadata_template=mark("{value}"),
    )


def order(task: DemoTask) -> list[str]:
    """Return the ids in the order in which a LlamaIndex query engine put them into its prompt."""
    retriever = CAUSRetriever.from_nodes(
        [_node(passage) for passage in task.passages],
        FunctionEmbedding(task.embed),
    )
    retriever.caus = task.caus
    # A mock model answers with its prompt; a window this wide keeps it one prompt.
    synthesizer = get_response_synthesizer(
        llm=MockLLM(),
        prompt_helper=PromptHelper(context_window=_AMPLE_WINDOW, tokenizer=str.split),
        response_mode=ResponseMode.COMPACT,
    )
    engine: Any = RetrieverQueryEngine(retriever, response_synthesizer=synthesizer)
    return ids_in_prompt(str(engine.query(task.query)))
