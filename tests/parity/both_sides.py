"""The same passages, vectors and embedding for the core, LangChain and LlamaIndex."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, TextNode

from shared_core import Passage, tokenize

DIM = 24
TOPICS = (
    "convolution kernel stride padding feature map",
    "optimizer gradient step learning rate momentum",
    "embedding table token index vector lookup",
    "attention query key value softmax head",
    "pooling window maximum average downsample",
)


def embed(text: str) -> list[float]:
    """Hash words into a few dimensions; deterministic, and near where words are shared."""
    vector = np.full(DIM, 0.01)
    for token in tokenize(text):
        vector[zlib.crc32(token.encode()) % DIM] += 1
    return [float(value) for value in vector]


class LangChainEmbedding(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class LlamaIndexEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


@dataclass(frozen=True)
class Corpus:
    """Passages as each side holds them."""

    passages: list[Passage]

    @property
    def vectors(self) -> list[list[float]]:
        return [embed(passage.text) for passage in self.passages]

    @property
    def documents(self) -> list[Document]:
        return [
            Document(id=passage.id, page_content=passage.text, metadata={**passage.metadata})
            for passage in self.passages
        ]

    @property
    def nodes(self) -> list[TextNode]:
        """Nodes whose metadata is no part of their text, as a LangChain document's is not."""
        return [
            TextNode(
                id_=passage.id,
                text=passage.text,
                metadata={**passage.metadata},
                excluded_embed_metadata_keys=[*passage.metadata],
            )
            for passage in self.passages
        ]

    def scored(self, scores: list[Any]) -> tuple[list[Document], list[NodeWithScore]]:
        """Return the first passages as candidates that carry a score."""
        documents, nodes = self.documents[: len(scores)], self.nodes[: len(scores)]
        for document, score in zip(documents, scores, strict=True):
            document.metadata["score"] = score
        return documents, [
            NodeWithScore(node=node, score=score) for node, score in zip(nodes, scores, strict=True)
        ]


def corpus(n: int = 60) -> Corpus:
    """Return passages of a few topics; every tenth repeats an earlier text, so ties occur."""
    rng = np.random.default_rng(7)
    passages = []
    for number in range(n):
        words = TOPICS[number % len(TOPICS)].split()
        text = " ".join(rng.choice(words, rng.integers(3, 9)))
        if number % 10 == 9:
            text = passages[number - 5].text
        lang = ("en", "de")[number % 2]
        passages.append(Passage(f"p{number}", text, {"lang": lang, "number": number}))
    return Corpus(passages)
