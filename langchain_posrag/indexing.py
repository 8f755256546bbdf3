"""The documents of a retriever: added, replaced, deleted and read back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from pydantic import ConfigDict, Field, InstanceOf, model_validator
from typing_extensions import override

from langchain_posrag.legs import EmbeddingLegs, Legs
from langchain_posrag.options import CAUSOptions, CountField
from langchain_posrag.vector_store_legs import VectorStoreLegs
from shared_core import HybridIndex
from shared_core.checking import check_each, check_several
from shared_core.expansion import NeighbourSpans
from shared_core.index import ChunkKeys


class IndexedDocuments(CAUSOptions, DocumentIndex):
    """The half of `CAUSRetriever` that changes its index; see there.

    Adding is all or nothing: a model that raises midway leaves both legs as they were. Over a
    vector store that holds as far as the store's own ``add_documents`` goes.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    index: HybridIndex | InstanceOf[VectorStoreLegs] = Field(default_factory=HybridIndex)
    embeddings: Embeddings | None = Field(default=None, repr=False)
    fetch_k: CountField = 50
    expand: InstanceOf[NeighbourSpans] | None = None
    chunk_keys: InstanceOf[ChunkKeys] = ChunkKeys()

    _method: ClassVar[tuple[str, ...]] = (*CAUSOptions._method, "fetch_k", "expand", "chunk_keys")

    @model_validator(mode="after")
    def _check_legs(self) -> Self:
        self._legs  # noqa: B018 - the property is the check
        return self

    @property
    def _legs(self) -> Legs:
        index, embeddings = self.index, self.embeddings
        if isinstance(index, HybridIndex) and embeddings is not None:
            return EmbeddingLegs(index, embeddings)
        if isinstance(index, VectorStoreLegs) and embeddings is None:
            return index
        raise ValueError(
            "a HybridIndex needs embeddings=, a vector store brings its own; "
            f"got index={index!r} and embeddings={embeddings!r}"
        )

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents, or replace those whose id is there, and return their ids.

        Raises
        ------
        ValueError
            If `documents` is one instead of several, one is no Document, an id occurs twice, an
            embedding is NaN, infinite or of another dimension, or the vector store would have to
            replace a document and cannot.
        """
        return self._legs.add(_checked(documents))

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """Do what `add_documents` does, with the embedding and the store awaited."""
        return await self._legs.aadd(_checked(documents))

    @override
    def upsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Do what `add_documents` does, and answer as LangChain's indexing does."""
        return UpsertResponse(succeeded=self.add_documents(items), failed=[])

    @override
    async def aupsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Do what `upsert` does, with the embedding and the store awaited."""
        return UpsertResponse(succeeded=await self.aadd_documents(items), failed=[])

    @override
    def delete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Delete documents by id; unknown ids are ignored.

        Raises
        ------
        ValueError
            If there are no `ids`, nothing being deleted by omission, or they are one text.
        """
        return _deleted(self._legs.delete(_given(ids)))

    @override
    async def adelete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Do what `delete` does, with the store awaited."""
        return _deleted(await self._legs.adelete(_given(ids)))

    @override
    def get(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Return copies of the documents of `ids`, without those that are not there.

        Raises
        ------
        ValueError
            If `ids` is one text instead of several.
        """
        return self._legs.get(_several(ids))

    @override
    async def aget(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Do what `get` does, with the store awaited."""
        return await self._legs.aget(_several(ids))


def _checked(documents: Iterable[Document]) -> list[Document]:
    return check_each(documents, "documents", Document, "; from_texts takes texts")


def _given(ids: list[str] | None) -> list[str]:
    if ids is None:
        raise ValueError("delete() needs ids=, got None")
    return _several(ids)


def _several(ids: Iterable[str]) -> list[str]:
    check_several(ids)
    return [*ids]


def _deleted(ids: list[str]) -> DeleteResponse:
    return DeleteResponse(num_deleted=len(ids), succeeded=ids, num_failed=0, failed=[])
