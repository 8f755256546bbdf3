"""The CAUS retriever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, InstanceOf, model_validator
from typing_extensions import override

from langchain_posrag.batching import aanswer_many, answer_many, take_found
from langchain_posrag.documents import documents_of
from langchain_posrag.indexing import deletion, documents_from_texts, documents_to_add, id_list
from langchain_posrag.legs import CallOptions, EmbeddingLegs, Legs
from langchain_posrag.options import (
    CAUSOptions,
    CountField,
    IndexArguments,
    RetrieverArguments,
    SpansField,
)
from langchain_posrag.overridden import searched_by_override
from langchain_posrag.tracing import atraced, traced
from langchain_posrag.vector_store_legs import VectorStoreLegs
from shared_core import HybridIndex
from shared_core.index import ChunkKeys, Tokenizer
from shared_core.index.dense import Dense, Metric
from shared_core.index.metadata import Where
from shared_core.index.sparse.bm25 import Variant
from shared_core.options import decode_options, encode_caus
from shared_core.overriding import follows, inherits
from shared_core.scoring.fusion import Alpha

_ADAPTER = "langchain_posrag"


class CAUSRetriever(CAUSOptions, DocumentIndex):
    """Search densely and by BM25, fuse the scores, and place the best k if the gate opens.

    Every call may set `k`, `fetch_k`, `alpha` and a metadata `filter`:
    ``retriever.invoke("query", k=3, filter={"lang": "en"})``. A filter is a mapping (equal
    values; a list means any of them) or a function of the metadata, and applies to both
    legs, over any vector store.

    Documents come back as copies with their id, or a random one if they had none. Unless
    `include_scores` is False they carry the fused score, in [0, 1] and higher is better, under
    ``metadata["score"]`` (a key of that name that was there before stays) and its explanation
    under ``metadata["posrag"]``. The explanation differs by query: set `include_scores` to False
    under LangChain's MultiQueryRetriever, which keeps equal documents once, and for a prompt that
    prints all metadata. EnsembleRetriever, as anything else that fuses ranks, takes slots for
    ranks: give ``psi="never"`` there, and place its result with a `PlacementTransformer`.

    To tracers and ``astream_events`` each leg is a retriever run of its own, tagged ``dense`` or
    ``sparse``: there, ``exclude_tags=["dense", "sparse"]`` leaves the documents of the result.

    With `expand` the k passages that were found take in their neighbours, and adjacent ones
    become one document: at most k documents come back, each with the id and metadata of its best
    passage and the text of the span. Neighbours pass the filter, too.

    Adding is all or nothing: a model that raises midway leaves both legs as they were. Over a
    vector store that holds as far as it does for the store's ``add_documents``.

    Attributes
    ----------
    index
        The passages: a `shared_core.HybridIndex`, or a vector store with a sparse leg, from
        `from_vectorstore`. It is held, never copied or rebuilt.
    embeddings
        Embeds queries and documents for a `HybridIndex`; a vector store has its own.
    fetch_k
        Depth of each leg's search before fusion, >= 1; at least `k` is always fetched.
    expand
        A `shared_core.neighbour_spans.NeighbourSpans`, whose `order` is ignored in favour of
        `placement`. None: passages come back as they are.
    chunk_keys
        Metadata keys from which the document and number of a chunk are read: a
        `shared_core.index.ChunkKeys`. A passage without them has no neighbours.
    k, alpha, fusion, placement, psi, evidence
        As in `shared_core.CAUS`.
    include_scores
        Whether the documents carry their score and explanation.

    Raises
    ------
    ValueError
        If an option is unknown or out of range (pydantic's ``ValidationError`` is one); while
        searching, if the budget of `expand` is smaller than the best passage, or the number of a
        chunk is not an integer.
    ProfileNotFoundError
        If there is no profile of the name in `psi`.

    Examples
    --------
    >>> from langchain_core.documents import Document
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> documents = [Document("torch.sort sorts a tensor"), Document("torch.load loads a file")]
    >>> model = DeterministicFakeEmbedding(size=8)  # or the one you have
    >>> retriever = CAUSRetriever.from_documents(documents, model, k=2, alpha=0.3, psi="always")
    >>> best, *_ = retriever.invoke("How do I sort a tensor?", alpha=0)
    >>> best.page_content, best.metadata["posrag"]["slot"]
    ('torch.sort sorts a tensor', 0)
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    index: HybridIndex | InstanceOf[VectorStoreLegs] = Field(default_factory=HybridIndex)
    embeddings: Embeddings | None = Field(default=None, repr=False)
    fetch_k: CountField = 50
    expand: SpansField | None = None
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

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        embeddings: Embeddings,
        *,
        metric: Metric = "cosine",
        dense: Dense = "flat",
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Embed and index documents; without any the retriever is empty and can be added to.

        Parameters
        ----------
        documents
            Ids unique among them.
        embeddings
            Embeds them, and the queries.
        metric, dense, variant, tokenizer
            As in `shared_core.HybridIndex`.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            As `add_documents`, and if an option is unknown or out of range.
        """
        index = HybridIndex(metric=metric, dense=dense, variant=variant, tokenizer=tokenizer)
        retriever = cls(index=index, embeddings=embeddings, **options)
        retriever.add_documents(documents)
        return retriever

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        embeddings: Embeddings,
        *,
        metadatas: Sequence[dict[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
        **options: Unpack[IndexArguments],
    ) -> Self:
        """Like `from_documents`, with texts, and the metadata and id of each if given.

        Raises
        ------
        ValueError
            As `from_documents`, and if there are not as many `metadatas` or `ids` as texts.
        """
        return cls.from_documents(
            documents_from_texts(texts, metadatas, ids), embeddings, **options
        )

    @classmethod
    def from_vectorstore(
        cls,
        store: VectorStore,
        sparse: object,
        *,
        higher_is_better: bool | None = None,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Search any LangChain vector store as the dense leg, with BM25 next to it.

        `langchain_posrag.vector_store_legs.VectorStoreLegs` says how their scores are fused, how
        a store applies a filter, and what `expand` does over it.

        Parameters
        ----------
        store
            Needs ``similarity_search_with_score``, or only its async version for `ainvoke` alone.
        sparse
            The store's documents, which are indexed here; or LangChain's BM25Retriever, which
            is converted; or a `langchain_posrag.sparse_leg.SparseLeg`.
        higher_is_better
            True if the store returns similarities, False if it returns distances. None is enough
            for InMemoryVectorStore, FAISS, Chroma, PGVector and Qdrant.
        variant, tokenizer
            As in `shared_core.BM25Index`; only where `sparse` are documents.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If the store cannot search with scores, their direction is unknown, `higher_is_better`
            is not a bool, `sparse` is something else or one document, or an option is unknown or
            out of range.
        """
        legs = VectorStoreLegs.over(
            store, sparse, higher_is_better=higher_is_better, variant=variant, tokenizer=tokenizer
        )
        return cls(index=legs, **options)

    def save(self, path: str | Path) -> None:
        """Write passages, vectors and options to a folder, at once or not at all; no pickle.

        Raises
        ------
        ValueError
            If the retriever searches a vector store, which keeps its own documents, or a
            document's metadata is not JSON. A tokenizer in `expand` is not saved, and `load`
            asks for `expand` again.
        IndexFormatError
            If the folder holds anything but an index.
        """
        if not isinstance(self.index, HybridIndex):
            raise ValueError(
                f"{type(self.index.store).__name__} keeps its own documents: persist the store, "
                "and call from_vectorstore again"
            )
        options = {**encode_caus(self.caus), "include_scores": self.include_scores}
        self.index.save(path, extra={_ADAPTER: options})

    @classmethod
    def load(
        cls,
        path: str | Path,
        embeddings: Embeddings,
        *,
        verify: bool = True,
        tokenizer: Tokenizer | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Read what `save` wrote, or any folder of `shared_core.HybridIndex.save`.

        Parameters
        ----------
        path
            The folder.
        embeddings
            The model the documents were embedded with.
        verify
            Embed one stored document again and compare; catches another model of equal dimension.
        tokenizer
            The one the index was built with, if it was not the default.
        **options
            Attributes of the class, in place of those that were saved.

        Raises
        ------
        IndexFormatError, CorruptIndexError
            If the folder is not an index, or a file is missing, truncated or altered.
        EmbeddingMismatchError
            If `embeddings` is not the model the documents were embedded with.
        ValueError
            If `embeddings` is not an embedding model, or an option is unknown or out of range.
        """
        index = HybridIndex.load(path, tokenizer=tokenizer)
        saved = decode_options({**index.extra.get(_ADAPTER, {}), **options})
        retriever = cls(index=index, embeddings=embeddings, **saved)
        if verify:
            index.verify_embeddings(lambda text: embeddings.embed_documents([text])[0])
        return retriever

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents, or replace those whose id is there, and return their ids.

        Raises
        ------
        ValueError
            If `documents` is one instead of several, one is not a Document, an id occurs twice,
            an embedding is NaN, infinite or of another dimension, or the vector store would have
            to replace a document and cannot.
        """
        return self._legs.add(documents_to_add(documents))

    @follows("add_documents")
    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """Async version of `add_documents`; the embedding and the store are awaited."""
        return await self._legs.aadd(documents_to_add(documents))

    @override
    def upsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Like `add_documents`, with the answer that LangChain's indexing expects."""
        return UpsertResponse(succeeded=self.add_documents(items), failed=[])

    @override
    @follows("upsert")
    async def aupsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Async version of `upsert`."""
        return UpsertResponse(succeeded=await self.aadd_documents(items), failed=[])

    @override
    def delete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Delete documents by id; unknown ids are ignored.

        Raises
        ------
        ValueError
            If `ids` is None, since nothing is deleted by omission, or one text.
        """
        return deletion(self._legs.delete(id_list(ids)))

    @override
    @follows("delete")
    async def adelete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Async version of `delete`."""
        return deletion(await self._legs.adelete(id_list(ids)))

    @override
    def get(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Return copies of the documents of `ids`, without those that are not there.

        Raises
        ------
        ValueError
            If `ids` is one text instead of several.
        """
        return self._legs.get(id_list(ids))

    @override
    @follows("get")
    async def aget(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Async version of `get`."""
        return await self._legs.aget(id_list(ids))

    @override
    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha | None = None,
        filter: Where = None,
    ) -> list[Document]:
        options = CallOptions(k=k, fetch_k=fetch_k, alpha=alpha, where=filter)
        searched = take_found(self, query) or self._legs
        found = traced(searched.search, run_manager, self.caus, query, options)
        return documents_of(found, include_scores=self.include_scores)

    @override
    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha | None = None,
        filter: Where = None,
    ) -> list[Document]:
        by_override = await searched_by_override(
            self, query, run_manager, k=k, fetch_k=fetch_k, alpha=alpha, filter=filter
        )
        if by_override is not None:
            return by_override
        options = CallOptions(k=k, fetch_k=fetch_k, alpha=alpha, where=filter)
        searched = take_found(self, query) or self._legs
        found = await atraced(searched.asearch, run_manager, self.caus, query, options)
        return documents_of(found, include_scores=self.include_scores)

    @override
    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Answer many queries at once, faster; the results are those of `invoke`.

        Queries are embedded one by one, up to ``max_concurrency`` at a time, and then searched
        for together. Each is a run that reports its part of the result. A subclass that overrides
        `invoke` or ``_get_relevant_documents`` is asked query by query.
        """
        legs = self._legs_for_many(inputs, "invoke", "_get_relevant_documents")
        if legs is None:
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        return answer_many(
            self, legs, self.caus, inputs, config, kwargs, return_exceptions=return_exceptions
        )

    @override
    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Async version of `batch`; the embeddings are awaited."""
        methods = "ainvoke", "_aget_relevant_documents", "_get_relevant_documents"
        legs = self._legs_for_many(inputs, *methods)
        if legs is None:
            return await super().abatch(
                inputs, config, return_exceptions=return_exceptions, **kwargs
            )
        return await aanswer_many(
            self, legs, self.caus, inputs, config, kwargs, return_exceptions=return_exceptions
        )

    def _legs_for_many(self, queries: Sequence[str], *methods: str) -> EmbeddingLegs | None:
        """Return the legs that search for many queries at once; None if each is asked alone."""
        legs = self._legs
        alone = len(queries) < 2 or not inherits(type(self), CAUSRetriever, *methods)
        return legs if isinstance(legs, EmbeddingLegs) and not alone else None

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = LangSmithRetrieverParams(ls_retriever_name="caus")
        if isinstance(self.index, VectorStoreLegs):
            params["ls_vector_store_provider"] = type(self.index.store).__name__
            embeddings = self.index.store.embeddings
        else:
            embeddings = self.embeddings
        if embeddings is not None:
            params["ls_embedding_provider"] = type(embeddings).__name__
        return params
