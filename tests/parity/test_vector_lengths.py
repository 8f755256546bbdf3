"""Cosines do not see how long vectors are: the same order from all that compare by them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import QueryBundle

from langchain_posrag import HybridScoreCompressor
from llamaindex_posrag import CAUSPostprocessor
from shared_core import HybridIndex, Passage
from shared_core.gating.fit import as_queries, fit_gate
from shared_core.gating.gate import ContextGate
from shared_core.vectors import query_similarities

from .both_sides import Corpus, corpus, embed

QUERY = "which kernel and stride for a feature map"
SIZES = [1e-23, 1.0, 1e15]


def distinct() -> Corpus:
    """Return passages of which no two are equally near the query."""
    near: dict[float, Passage] = {}
    for passage in corpus().passages:
        one, other = np.array(embed(passage.text)), np.array(embed(QUERY))
        cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        near.setdefault(round(float(cosine), 4), passage)
    return Corpus([*near.values()])


CORPUS = distinct()
K = len(CORPUS.passages)


class Scaled(Embeddings):
    """LangChain's model, with vectors of another length."""

    def __init__(self, size: float) -> None:
        self.size = size

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [self.size * value for value in embed(text)]


class ScaledNodes(BaseEmbedding):
    """LlamaIndex's."""

    size: float

    def _get_text_embedding(self, text: str) -> list[float]:
        return [self.size * value for value in embed(text)]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def by_cosine() -> list[str]:
    """Return ids by the cosine to the query, in float64."""
    vectors, query = np.array(CORPUS.vectors), np.array(embed(QUERY))
    found = vectors @ query / np.linalg.norm(vectors, axis=1)
    return [CORPUS.passages[row].id for row in np.argsort(-found)]


def from_index(size: float) -> list[str]:
    index = HybridIndex()
    index.add(CORPUS.passages, size * np.array(CORPUS.vectors))
    found = index.search(QUERY, size * np.array(embed(QUERY)), k=K, fetch_k=K, alpha=1.0)
    return [passage.id for passage in found.passages]


def from_compressor(size: float) -> list[str]:
    compressor = HybridScoreCompressor(embeddings=Scaled(size), k=K, alpha=1.0, psi="never")
    return [_id(each) for each in compressor.compress_documents(CORPUS.documents, QUERY)]


def from_postprocessor(size: float) -> list[str]:
    """Of the scores that LlamaIndex's own index gives, in another order than by score."""
    index = VectorStoreIndex(CORPUS.nodes, embed_model=ScaledNodes(size=size))
    found = index.as_retriever(similarity_top_k=K).retrieve(QUERY)
    found.sort(key=lambda each: each.node.node_id)
    placed = CAUSPostprocessor(k=K, alpha=1.0, psi="never").postprocess_nodes(
        found, QueryBundle(QUERY)
    )
    return [each.node.node_id for each in placed]


def from_gate(size: float) -> list[str]:
    model = Scaled(size)
    vectors = model.embed_documents([passage.text for passage in CORPUS.passages])
    found = query_similarities(model.embed_query(QUERY), vectors, K)
    return [CORPUS.passages[row].id for row in np.argsort(-np.array(found))]


def _id(document: Document) -> str:
    assert document.id is not None
    return document.id


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", [from_index, from_compressor, from_postprocessor, from_gate])
def test_the_order_does_not_see_lengths(order: object, size: float) -> None:
    """Components of 1e-23 have squares that vanish in float32."""
    assert order(size) == by_cosine()  # type: ignore[operator]


def fitted(size: float) -> ContextGate:
    model = Scaled(size)
    passages = CORPUS.passages
    vectors: npt.ArrayLike = model.embed_documents([passage.text for passage in passages])
    return fit_gate(
        [passage.id for passage in passages],
        [passage.text for passage in passages],
        vectors,
        as_queries(model.embed_query, model.embed_documents),
    )


@pytest.mark.parametrize("size", SIZES)
def test_a_fit_does_not_see_lengths(size: float) -> None:
    """Nor does the check that the model is still the same one."""
    gate, usual = fitted(size), fitted(1.0)
    np.testing.assert_allclose(
        gate.candidates.similarities, usual.candidates.similarities, atol=1e-6
    )
    np.testing.assert_allclose(
        gate.candidates.foreign_similarities, usual.candidates.foreign_similarities, atol=1e-6
    )
    again = Scaled(1.0)
    gate.candidates.verify_embeddings(as_queries(again.embed_query, again.embed_documents))
