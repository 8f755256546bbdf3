"""A reader behind a real LangChain chain and a real LlamaIndex query engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.llms import LLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate as LangChainPrompt
from langchain_core.runnables import Runnable, RunnablePassthrough
from llama_index.core import PromptTemplate as LlamaIndexPrompt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import TextNode
from pydantic import PrivateAttr

import langchain_posrag
import llamaindex_posrag
from shared_core.arrays import Vectors
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.generation import HuggingFaceModel
from shared_core.sensitivity import ANSWER

Corpus = Sequence[Mapping[str, Any]]

EmbedTexts: TypeAlias = Callable[[Sequence[str]], Vectors]
"""Texts to an array with one row per text; narrower than `shared_core.arrays.Embed`."""


def embedded_once(texts: Sequence[str]) -> EmbedTexts:
    """Embed texts now, all together; return what looks their vectors up."""
    vectors = dict(zip(texts, EmbeddingModel(default_model()).embed(texts), strict=True))
    return lambda some: np.stack([vectors[text] for text in some])


class LangChainEmbeddings(Embeddings):
    """A function from texts to vectors as LangChain's embedding model."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class LlamaIndexEmbedding(BaseEmbedding):
    """A function from texts to vectors as LlamaIndex's embedding model."""

    _embed: EmbedTexts = PrivateAttr()

    def __init__(self, embed: EmbedTexts) -> None:
        super().__init__()
        self._embed = embed

    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] = self._embed([text])[0].tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class LangChainReader(LLM):
    """A reader as LangChain's completion model."""

    reader: Any

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _call(
        self, prompt: str, stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> str:
        return str(self.reader.generate([prompt])[0])


class LlamaIndexReader(CustomLLM):
    """A reader as LlamaIndex's completion model."""

    _reader: HuggingFaceModel = PrivateAttr()

    def __init__(self, reader: HuggingFaceModel) -> None:
        super().__init__()
        self._reader = reader

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self._reader.name)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._reader.generate([prompt])[0])

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        yield self.complete(prompt)


def langchain_chain(
    reader: HuggingFaceModel, corpus: Corpus, embed: EmbedTexts, **options: Any
) -> Runnable[str, str]:
    """Return question -> answer: retriever, prompt, reader."""
    retriever = langchain_posrag.CAUSRetriever.from_documents(
        [Document(id=each["id"], page_content=each["text"]) for each in corpus],
        LangChainEmbeddings(embed),
        **options,
    )

    def format_docs(found: Sequence[Document]) -> str:
        return "\n\n".join(document.page_content for document in found)

    inputs: Any = {"context": retriever | format_docs, "question": RunnablePassthrough()}
    prompt = LangChainPrompt.from_template(ANSWER.text)
    chain: Runnable[str, str] = inputs | prompt | LangChainReader(reader=reader) | StrOutputParser()
    return chain


def llamaindex_engine(
    reader: HuggingFaceModel, corpus: Corpus, embed: EmbedTexts, **options: Any
) -> RetrieverQueryEngine:
    """Return a query engine: retriever, compact synthesis, reader."""
    retriever = llamaindex_posrag.CAUSRetriever.from_nodes(
        [TextNode(id_=each["id"], text=each["text"]) for each in corpus],
        LlamaIndexEmbedding(embed),
        **options,
    )
    template = ANSWER.text.replace("{context}", "{context_str}").replace(
        "{question}", "{query_str}"
    )
    return RetrieverQueryEngine.from_args(
        retriever,
        llm=LlamaIndexReader(reader),
        text_qa_template=LlamaIndexPrompt(template),
        response_mode=ResponseMode.COMPACT,
    )
