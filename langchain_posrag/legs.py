"""What a retriever searches: a dense and a sparse leg over the same passages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from typing_extensions import override

from langchain_posrag.documents import document_of, id_of, passage_of
from shared_core import CAUS, Arrangement, HybridIndex, Passage
from shared_core.checking import SHOWN
from shared_core.index.metadata import Where
from shared_core.index.passages import check_passages
from shared_core.scoring.fusion import Alpha
from shared_core.types import Query
from shared_core.wording import shortened

Vector = Sequence[float]


class CallOptions(TypedDict):
    """Options set by a single call; None keeps the retriever's own."""

    k: int | None
    fetch_k: int | None
    alpha: Alpha | None
    where: Where


class Legs(ABC):
    """Both legs, and the documents behind them."""

    @abstractmethod
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Search both legs, fuse and place; the id of a passage without one is ``""``."""

    @abstractmethod
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Async version of `search`."""

    @abstractmethod
    def add(self, documents: Sequence[Document]) -> list[str]:
        """Add or replace documents in both legs, or in neither; return their ids."""

    @abstractmethod
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        """Async version of `add`; the embedding and the store are awaited."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete from both legs; return the ids that were there."""

    @abstractmethod
    async def adelete(self, ids: Sequence[str]) -> list[str]:
        """Async version of `delete`; the store is awaited."""

    @abstractmethod
    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return fresh copies of the documents that are there."""

    @abstractmethod
    async def aget(self, ids: Sequence[str]) -> list[Document]:
        """Async version of `get`; the store is awaited."""


@dataclass(slots=True)
class EmbeddingLegs(Legs):
    """The core's own index, and the model that embeds for it."""

    index: HybridIndex
    embeddings: Embeddings

    def embed(self, query: str) -> Vector:
        """Embed a query; ValueError if the model returns None, as one that hides its errors may."""
        return _not_none(self.embeddings.embed_query(query), query)

    async def aembed(self, query: str) -> Vector:
        """Async version of `embed`."""
        return _not_none(await self.embeddings.aembed_query(query), query)

    @override
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        return caus.search(self.index, [Query(query, self.embed(query))], **options)[0]

    @override
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        vector = await self.aembed(query)
        found = await caus.asearch(self.index, [Query(query, vector)], **options)
        return found[0]

    @override
    def add(self, documents: Sequence[Document]) -> list[str]:
        if not documents:
            return []
        passages = _checked_passages(documents)
        vectors = self.embeddings.embed_documents([passage.text for passage in passages])
        return self.index.add(passages, vectors)

    @override
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        if not documents:
            return []
        passages = await run_in_executor(None, _checked_passages, documents)
        vectors = await self.embeddings.aembed_documents([p.text for p in passages])
        return await run_in_executor(None, self.index.add, passages, vectors)

    @override
    def delete(self, ids: Sequence[str]) -> list[str]:
        return self.index.delete(ids)

    @override
    async def adelete(self, ids: Sequence[str]) -> list[str]:
        return await run_in_executor(None, self.delete, ids)

    @override
    def get(self, ids: Sequence[str]) -> list[Document]:
        return [document_of(passage) for passage in self.index.get(ids)]

    @override
    async def aget(self, ids: Sequence[str]) -> list[Document]:
        return await run_in_executor(None, self.get, ids)


def _checked_passages(documents: Sequence[Document]) -> list[Passage]:
    passages = [passage_of(document, id_of(document)) for document in documents]
    check_passages(passages)
    return passages


def _not_none(vector: Vector | None, query: str) -> Vector:
    if vector is None:
        shown = shortened(repr(query), SHOWN)
        raise ValueError(
            f"the embedding model returned None for the query {shown}: let it raise its error"
        )
    return vector
