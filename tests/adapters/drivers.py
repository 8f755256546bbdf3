"""One driver a framework: the same passages and options in, the same facts out.

A test of this folder takes the fixture `adapter`, speaks to it in passages and dictionaries, and is
run once with LangChain and once with LlamaIndex. What it expects comes from the core.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

import langchain_posrag
import llamaindex_posrag
from shared_core import CAUS, Arrangement, HybridIndex, Passage, PositionProfile, tokenize
from shared_core.types import Query

DIM = 24
TOPICS = (
    "convolution kernel stride padding feature map",
    "optimizer gradient step learning rate momentum",
    "embedding table token index vector lookup",
    "attention query key value softmax head",
    "pooling window maximum average downsample",
)
QUERIES = (
    "convolution with stride",
    "softmax attention attention head",
    "nothing known here",
    "",
)
PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.5, 0.4, 0.6, 0.8), distraction=(0.3, 0.1, 0.2, 0.5, 0.4)
)
Vector = list[float]
Embed = Callable[[str], Any]


def embed(text: str) -> Vector:
    """Hash words into a few dimensions; deterministic, and near where words are shared."""
    vector = np.full(DIM, 0.01)
    for token in tokenize(text):
        vector[zlib.crc32(token.encode()) % DIM] += 1
    return [float(value) for value in vector]


def corpus(n: int = 60) -> list[Passage]:
    """Return passages of a few topics; every tenth repeats an earlier text, so ties occur."""
    rng = np.random.default_rng(7)
    passages: list[Passage] = []
    for number in range(n):
        words = TOPICS[number % len(TOPICS)].split()
        text = " ".join(rng.choice(words, rng.integers(3, 9)))
        if number % 10 == 9:
            text = passages[number - 5].text
        metadata = {"lang": ("en", "de")[number % 2], "number": number, "tags": [f"t{number % 3}"]}
        passages.append(Passage(f"p{number}", text, metadata))
    return passages


def core_index(passages: Sequence[Passage], **options: Any) -> HybridIndex:
    """Return an index of the core that holds the passages."""
    index = HybridIndex(**options)
    index.add(passages, [embed(passage.text) for passage in passages])
    return index


class Hit(NamedTuple):
    """What came back in one slot: a document or a node without what posrag added to it."""

    id: str | None
    text: str
    metadata: dict[str, Any]
    score: float | None
    why: dict[str, Any]


def expected(found: Arrangement) -> list[Hit]:
    """Return what an adapter has to make of an arrangement of the core, bit for bit."""
    rows = zip(found.passages, found.scores, found.explain(), strict=True)
    return [Hit(p.id, p.text, dict(p.metadata), score, why) for p, score, why in rows]


def search(index: HybridIndex, query: str, caus: CAUS, **options: Any) -> list[Hit]:
    """Return what the core finds."""
    (found,) = caus.search(index, [Query(query, embed(query))], **options)
    return expected(found)


def ids(found: Sequence[Any]) -> list[str | None]:
    """Return the ids of hits, documents or nodes."""
    return [each.node_id if isinstance(each, NodeWithScore) else each.id for each in found]


class LangChainModel(Embeddings):
    """A function of the text as LangChain's embedding model; `queries` embeds queries."""

    def __init__(self, documents: Embed = embed, queries: Embed | None = None) -> None:
        self.documents, self.queries = documents, queries or documents

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        return [self.documents(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self.queries(text)


class LlamaIndexModel(BaseEmbedding):
    """The same as LlamaIndex's."""

    documents: Any = Field(default=embed, exclude=True)
    queries: Any = Field(default=None, exclude=True)

    def _get_text_embedding(self, text: str) -> Vector:
        return self.documents(text)

    def _get_query_embedding(self, query: str) -> Vector:
        return (self.queries or self.documents)(query)

    async def _aget_query_embedding(self, query: str) -> Vector:
        return self._get_query_embedding(query)


class Driver:
    """What is alike on both sides but for the names in the methods."""

    retriever: Any
    rescorer: Any
    many: str
    single: str
    batch: str
    model: Any
    hits: Any

    def items(self, passages: Sequence[Passage], scores: Sequence[float | None] = ()) -> Any:
        """Return passages as documents or nodes, with scores if given."""
        raise NotImplementedError

    def build(self, passages: Sequence[Passage] = (), model: Any = None, **options: Any) -> Any:
        """Return a retriever over an index of its own."""
        return self.built(self.items(passages), model or self.model(), **options)

    def built(self, items: Any, model: Any, **options: Any) -> Any:
        """Return one of documents or nodes."""
        return getattr(self.retriever, f"from_{self.many}")(items, model, **options)

    def rescorer_of(self, items: Any, **options: Any) -> Any:
        """Return a rescorer with the statistics of a corpus."""
        return getattr(self.rescorer, f"from_{self.many}")(items, **options)

    def load(self, path: Path, model: Any = None, **options: Any) -> Any:
        """Load what ``retriever.save`` wrote."""
        return self.retriever.load(path, model or self.model(), **options)

    def add(self, retriever: Any, items: Any) -> list[str]:
        """Add documents or nodes."""
        return getattr(retriever, f"add_{self.many}")(items)

    async def aadd(self, retriever: Any, items: Any) -> list[str]:
        """Add them, awaited."""
        return await getattr(retriever, f"aadd_{self.many}")(items)

    def retrieve(self, retriever: Any, query: str) -> Any:
        """Retrieve."""
        return getattr(retriever, self.single)(query)

    async def aask(self, retriever: Any, query: str) -> list[Hit]:
        """Retrieve, awaited."""
        return self.hits(await getattr(retriever, f"a{self.single}")(query))

    def ask_many(self, retriever: Any, queries: Sequence[str]) -> list[list[Hit]]:
        """Retrieve for many queries at once."""
        return [*map(self.hits, getattr(retriever, self.batch)([*queries]))]

    async def aask_many(self, retriever: Any, queries: Sequence[str]) -> list[list[Hit]]:
        """Retrieve for many queries at once, awaited."""
        return [*map(self.hits, await getattr(retriever, f"a{self.batch}")([*queries]))]


class LangChain(Driver):
    """How to speak with `langchain_posrag`."""

    package = langchain_posrag
    retriever = langchain_posrag.CAUSRetriever
    rescorer = langchain_posrag.HybridScoreCompressor
    placer = langchain_posrag.PlacementTransformer
    one = "Document"
    many = "documents"
    single, batch = "invoke", "batch"
    model = LangChainModel

    def items(
        self, passages: Sequence[Passage], scores: Sequence[float | None] = ()
    ) -> list[Document]:
        """Return passages as documents, with scores if given."""
        found = [Document(p.text, id=p.id, metadata={**p.metadata}) for p in passages]
        for document, score in zip(found, scores, strict=False):
            document.metadata["score"] = score
        return found

    def item(self, text: str, id: str, **metadata: Any) -> Document:
        """Return one document."""
        return Document(text, id=id, metadata=metadata)

    def hits(self, found: Sequence[Document]) -> list[Hit]:
        """Return what came back, and check that it is LangChain's."""
        hits = []
        for document in found:
            metadata = {**document.metadata}
            why, score = metadata.pop("posrag"), metadata.pop("score", None)
            hits.append(Hit(document.id, document.page_content, metadata, score, why))
        return hits

    def over_store(self, passages: Sequence[Passage], **options: Any) -> Any:
        """Return a retriever over the framework's own vector store."""
        store = InMemoryVectorStore(LangChainModel())
        store.add_documents(self.items(passages))
        return self.retriever.from_vectorstore(store, self.items(passages), **options)

    def ask(
        self,
        retriever: Any,
        query: str,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Hit]:
        """Retrieve, with a filter and options for this query if given."""
        return self.hits(retriever.invoke(query, filter=where, **options))

    def delete(self, retriever: Any, ids: Any) -> list[str]:
        """Delete by id, and return which were there."""
        return retriever.delete(ids)["succeeded"]

    async def adelete(self, retriever: Any, ids: Any) -> list[str]:
        """Delete, awaited."""
        return (await retriever.adelete(ids))["succeeded"]

    def place(self, step: Any, items: Any) -> list[Any]:
        """Give documents to a `PlacementTransformer`."""
        return step.invoke(items)

    def rescore(self, step: Any, items: Any, query: str) -> list[Any]:
        """Give candidates to a `HybridScoreCompressor`."""
        return [*step.compress_documents(items, query)]


class LlamaIndex(Driver):
    """How to speak with `llamaindex_posrag`."""

    package = llamaindex_posrag
    retriever = llamaindex_posrag.CAUSRetriever
    rescorer = llamaindex_posrag.CAUSPostprocessor
    placer = llamaindex_posrag.PlacementPostprocessor
    one = "BaseNode"
    many = "nodes"
    single, batch = "retrieve", "retrieve_batch"

    def model(self, documents: Embed = embed, queries: Embed | None = None) -> LlamaIndexModel:
        """Return a function of the text as an embedding model."""
        return LlamaIndexModel(documents=documents, queries=queries)

    def items(self, passages: Sequence[Passage], scores: Sequence[float | None] = ()) -> list[Any]:
        """Return passages as nodes, with scores if given."""
        nodes = [self.item(p.text, p.id, **p.metadata) for p in passages]
        if not scores:
            return nodes
        pairs = zip(nodes, scores, strict=False)
        return [NodeWithScore(node=node, score=score) for node, score in pairs]

    def item(self, text: str, id: str, **metadata: Any) -> TextNode:
        """Return a node whose metadata are no part of its text, as a document's are not."""
        return TextNode(
            id_=id, text=text, metadata=metadata, excluded_embed_metadata_keys=[*metadata]
        )

    def hits(self, found: Sequence[NodeWithScore]) -> list[Hit]:
        """Return what came back, and check that it is LlamaIndex's."""
        hits = []
        for each in found:
            assert isinstance(each, llamaindex_posrag.ExplainedNode)
            text = each.node.get_content(MetadataMode.NONE)
            hits.append(Hit(each.node_id, text, each.node.metadata, each.score, each.posrag))
        return hits

    def over_store(self, passages: Sequence[Passage], **options: Any) -> Any:
        """Return a retriever over the framework's own vector store."""
        index = VectorStoreIndex(self.items(passages), embed_model=self.model())
        return self.retriever.from_index(index, **options)

    def ask(
        self,
        retriever: Any,
        query: str,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Hit]:
        """Retrieve, with a filter and options for this query if given."""
        if where is not None:
            filters = [
                MetadataFilter(key=key, value=value, operator=FilterOperator.IN)
                if isinstance(value, list)
                else MetadataFilter(key=key, value=value)
                for key, value in where.items()
            ]
            options["filters"] = MetadataFilters(filters=filters)
        return self.hits(retriever.using(**options).retrieve(query))

    def delete(self, retriever: Any, ids: Any) -> list[str]:
        """Delete by id, and return which were there."""
        return retriever.delete_nodes(ids)

    async def adelete(self, retriever: Any, ids: Any) -> list[str]:
        """Delete, awaited."""
        return await retriever.adelete_nodes(ids)

    def place(self, step: Any, items: Any) -> list[Any]:
        """Give nodes to a `PlacementPostprocessor`."""
        scored = [
            each if isinstance(each, NodeWithScore) else NodeWithScore(node=each) for each in items
        ]
        return step.postprocess_nodes(scored)

    def rescore(self, step: Any, items: Any, query: str) -> list[Any]:
        """Give candidates to a `CAUSPostprocessor`."""
        return step.postprocess_nodes(items, query_str=query)


Adapter = LangChain | LlamaIndex
