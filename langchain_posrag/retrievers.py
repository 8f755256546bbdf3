"""The CAUS retriever."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, Unpack

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import UpsertResponse
from langchain_core.indexing.base import DeleteResponse, DocumentIndex
from langchain_core.retrievers import LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.runnables.config import ContextThreadPoolExecutor, get_config_list
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, InstanceOf, model_validator
from typing_extensions import override

from langchain_posrag.documents import (
    check_query,
    deletion,
    document_of,
    documents_from_texts,
    documents_of,
    id_list,
    passages_of,
)
from langchain_posrag.options import (
    CAUSOptions,
    CountField,
    IndexArguments,
    RetrieverArguments,
    SpansField,
)
from langchain_posrag.vector_stores import VectorStoreEngine
from shared_core import Arrangement, HybridIndex
from shared_core.engines import Engine, connect
from shared_core.engines.store import gathered
from shared_core.index import ChunkKeys, Tokenizer, Variant, Where
from shared_core.index.dense import Dense, Metric
from shared_core.options import CAUS_KEY, decode_options, encode_caus
from shared_core.tuning import tune
from shared_core.types import Query, Tuning

_ADAPTER = "langchain_posrag"
"""Key of what LangChain alone keeps in `HybridIndex.extra`."""


class CAUSRetriever(CAUSOptions, DocumentIndex):
    """Search densely and by BM25, fuse the scores, and place the best k if the gate opens.

    Every call may set `k`, `fetch_k`, `alpha` and a metadata `filter`:
    ``retriever.invoke("query", k=3, filter={"lang": "en"})``. A filter is a mapping (equal
    values; a list means any of them) or a function of the metadata, and applies to both
    legs, over any vector store.

    Documents come back as copies with their id, or a random one if they had none. Unless
    `include_scores` is False they carry the fused score, in [0, 1] and higher is better, under
    ``metadata["score"]`` (in place of a value of the document's own) and its explanation under
    ``metadata["posrag"]``. The explanation differs by query: set `include_scores` to False under
    LangChain's MultiQueryRetriever, which keeps equal documents once, and for a prompt that prints
    all metadata. EnsembleRetriever, as anything else that fuses ranks, takes slots for ranks: give
    ``psi="never"`` there, and place its result with a `PlacementTransformer`.

    With `expand` the k passages that were found take in their neighbours, and adjacent ones
    become one document: at most k documents come back, each with the id and metadata of its best
    passage and the text of the span. Neighbours pass the filter, too.

    Adding is all or nothing: a model that raises midway leaves both legs as they were. Over a
    vector store that holds as far as it does for the store's ``add_documents``.

    Attributes
    ----------
    index
        The passages: a `HybridIndex`, or a vector store with BM25 next to it, from
        `from_vectorstore`. It is held, never copied or rebuilt.
    embeddings
        Embeds queries and documents for a `HybridIndex`; a vector store has its own.
    fetch_k
        Depth of each leg's search before fusion, >= 1; at least `k` is always fetched.
    expand
        A `NeighbourSpans`, whose `order` is ignored in favour of
        `placement`. None: passages come back as they are.
    chunk_keys
        Metadata keys from which the document and number of a chunk are read: a
        `ChunkKeys`. A passage without them has no neighbours.
    k, alpha, fusion, placement, psi, rule, hit_rates, distinct, per_source,
    min_similarity, tuning
        As in `CAUS`.
    include_scores
        Whether the documents carry their score and explanation.

    Raises
    ------
    ValueError
        If an option is unknown or out of range (pydantic's ``ValidationError`` is one); while
        searching, if the budget of `expand` is smaller than the best passage.
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

    index: InstanceOf[Engine] = Field(default_factory=HybridIndex)
    embeddings: Embeddings | None = Field(default=None, repr=False)
    fetch_k: CountField = 50
    expand: SpansField | None = None
    chunk_keys: InstanceOf[ChunkKeys] = ChunkKeys()
    min_similarity: Annotated[float, Field(ge=-1, le=1)] | None = None
    tuning: InstanceOf[Tuning] | None = None

    @model_validator(mode="after")
    def _check_index(self) -> Self:
        if self.index.embeds == (self.embeddings is not None):
            raise ValueError(
                "a HybridIndex needs embeddings=, a vector store brings its own; "
                f"got index={self.index!r} and embeddings={self.embeddings!r}"
            )
        return self

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
            As in `HybridIndex`.
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
        sparse: object = None,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        id_key: str | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Search any LangChain vector store as the dense leg, with BM25 next to it.

        A store scores only what it finds: what BM25 alone found counts with the lowest of these
        scores (``dense_exact`` in its explanation is False), unless it is rescored. What BM25 found
        and the store does not have any more is left out: one ``get_by_ids`` a query, of at most
        `fetch_k` ids, where the store has that method and the ids of both sides are the same.
        `langchain_posrag.vector_stores.VectorStoreEngine` says how a store applies a filter.

        Parameters
        ----------
        store
            Needs ``similarity_search_with_score``, or only its async version for `ainvoke` alone.
        sparse
            The store's documents, which are indexed here; or LangChain's BM25Retriever, which is
            converted; or a `shared_core.index.PassageIndex`. Where the ids of the store are others,
            documents of equal text are the same, or of equal metadata under `id_key`. None: all
            documents are read out of the store, which InMemoryVectorStore, FAISS, Chroma and Qdrant
            allow. BM25 holds them in memory; what is added to the store later it finds if added
            here.
        higher_is_better
            True if the store returns similarities, False if it returns distances. None is enough
            for InMemoryVectorStore, FAISS, Chroma, PGVector and Qdrant.
        rescore
            Embed what only BM25 found, with the model of the store, at every query.
        variant, tokenizer
            As in `PassageIndex`; only where `sparse` are documents.
        id_key
            Key of the metadata that names a document in `sparse` and in the store.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If the store cannot search with scores, their direction is unknown, `sparse` is
            something else or one document, or None where the store cannot list its documents, the
            store has no embeddings to `rescore` with, no document has `id_key`, or an
            option is unknown or out of range.
        """
        engine = VectorStoreEngine(
            store,
            sparse,
            higher_is_better=higher_is_better,
            rescore=rescore,
            variant=variant,
            tokenizer=tokenizer,
            id_key=id_key,
        )
        return cls(index=engine, **options)

    @classmethod
    def from_url(
        cls,
        url: str,
        embeddings: Embeddings,
        *,
        collection: str = "posrag",
        api_key: str | None = None,
        timeout: float = 10.0,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Search a collection in a database, which holds and scores both legs itself.

        Parameters
        ----------
        url
            Its address: ``postgresql://user:password@host:port/database``, ``qdrant://host:port``,
            ``lancedb:///folder`` or ``milvus://host:port``.
        embeddings
            Embeds documents and queries.
        collection
            Made when documents are first added.
        api_key
            Of Qdrant or Milvus; it may also stand in the address, ``qdrant://:key@host``.
        timeout
            Seconds after which a request is given up.
        **options
            Attributes of the class. Others of the connection: `from_engine`.

        Raises
        ------
        ValueError
            If no engine has such an address, or an option is unknown or out of range.
        EngineError
            If the database does not answer.
        """
        key = {} if api_key is None else {"api_key": api_key}
        engine = connect(url, collection, timeout=timeout, **key)
        return cls.from_engine(engine, embeddings, **options)

    @classmethod
    def from_engine(
        cls, engine: Engine, embeddings: Embeddings, **options: Unpack[RetrieverArguments]
    ) -> Self:
        """Search an engine: what `connect` returns, with options of the connection, or your own.

        Raises
        ------
        ValueError
            If an option is unknown or out of range.
        """
        return cls(index=engine, embeddings=embeddings, **options)

    def save(self, path: str | Path) -> None:
        """Write passages, vectors and options to a folder, at once or not at all; no pickle.

        Raises
        ------
        ValueError
            If the retriever searches a store or database, which keeps its own documents, or a
            document's metadata is not JSON. A tokenizer in `expand` is not saved, and `load`
            asks for `expand` again.
        IndexFormatError
            If the folder holds anything but an index.
        """
        if not isinstance(self.index, HybridIndex):
            held = getattr(self.index, "name", type(self.index).__name__)
            raise ValueError(
                f"{held} keeps its own documents: open it anew by from_vectorstore or from_url"
            )
        own = {"include_scores": self.include_scores}
        self.index.save(path, extra={CAUS_KEY: encode_caus(self.caus), _ADAPTER: own})

    @classmethod
    def load(
        cls,
        path: str | Path,
        embeddings: Embeddings,
        *,
        tokenizer: Tokenizer | None = None,
        **options: Unpack[RetrieverArguments],
    ) -> Self:
        """Read what `save` wrote, or LlamaIndex's retriever, or any `HybridIndex.save`.

        Parameters
        ----------
        path
            The folder.
        embeddings
            The model the documents were embedded with. One stored document is embedded again and
            compared, which catches another model of equal dimension.
        tokenizer
            The one the index was built with, if it was not the default.
        **options
            Attributes of the class, in place of those that were saved. A custom placement, and
            ``expand`` with a ``count_tokens``, have to be given again. The filters of a LlamaIndex
            retriever are not applied, with a warning: here each call has its own.

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
        if filters := index.extra.get("llamaindex_posrag", {}).get("filters"):
            warnings.warn(
                f"{path} was saved with filters={filters}, which are not applied here: give each "
                "call its filter=",
                stacklevel=2,
            )
        own, caus = index.extra.get(_ADAPTER, {}), index.extra.get(CAUS_KEY, {})
        saved = decode_options({**own, **caus, **options})
        retriever = cls(index=index, embeddings=embeddings, **saved)
        index.verify_embeddings(lambda text: embeddings.embed_documents([text])[0])
        return retriever

    def add_documents(self, documents: Iterable[Document]) -> list[str]:
        """Add documents, or replace those whose id is there, and return their ids.

        Raises
        ------
        ValueError
            If `documents` is one instead of several, one is not a Document, an id occurs twice,
            an embedding is NaN, infinite or of another dimension, or the vector store would have
            to replace a document and cannot, or may have it under another id.
        """
        passages = passages_of(documents)
        if self.embeddings is None or not passages:
            return self.index.add(passages)
        vectors = self.embeddings.embed_documents([passage.text for passage in passages])
        return self.index.add(passages, vectors)

    async def aadd_documents(self, documents: Iterable[Document]) -> list[str]:
        """Async version of `add_documents`; the embedding and the store are awaited."""
        passages = await run_in_executor(None, passages_of, documents)
        if self.embeddings is None or not passages:
            return await self.index.aadd(passages)
        vectors = await self.embeddings.aembed_documents([passage.text for passage in passages])
        return await self.index.aadd(passages, vectors)

    @override
    def upsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Like `add_documents`, with the answer that LangChain's indexing expects."""
        return UpsertResponse(succeeded=self.add_documents(items), failed=[])

    @override
    async def aupsert(self, items: Sequence[Document], /) -> UpsertResponse:  # type: ignore[override]
        """Async version of `upsert`."""
        return UpsertResponse(succeeded=await self.aadd_documents(items), failed=[])

    @override
    def delete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Delete documents by id; unknown ids are ignored.

        Raises
        ------
        ValueError
            If `ids` is None, since nothing is deleted by omission, or one text, or one of them is
            no text, or the vector store may have a document under another id.
        """
        return deletion(self.index.delete(id_list(ids)))

    @override
    async def adelete(self, ids: list[str] | None = None) -> DeleteResponse:  # type: ignore[override]
        """Async version of `delete`."""
        return deletion(await self.index.adelete(id_list(ids)))

    @override
    def get(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Return copies of the documents of `ids`, without those that are not there.

        Raises
        ------
        ValueError
            If `ids` is one text instead of several, or one of them is no text.
        """
        return [*map(document_of, self.index.get(id_list(ids)))]

    @override
    async def aget(self, ids: Sequence[str], /) -> list[Document]:  # type: ignore[override]
        """Async version of `get`."""
        return [*map(document_of, await self.index.aget(id_list(ids)))]

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        found = options.pop("batched", {}).get(check_query(query))
        if found is None:
            (found,) = self._search([self._query(query)], **options)
        return self._documents(found)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        found = options.pop("batched", {}).get(check_query(query))
        if found is None:
            given, asked = _call_options(**options), [await self._aquery(query)]
            (found,) = await self.caus.asearch(self.index, asked, **given)
        return self._documents(found)

    def tune(
        self,
        questions: Sequence[str],
        relevant: Sequence[Collection[str]],
        *,
        filter: Where = None,
    ) -> Self:
        """Return a retriever over the same index, whose options labelled questions have chosen.

        ``tuned.tuning`` says what that gains, and how sure it is.

        Parameters
        ----------
        questions
            At least 5.
        relevant
            The ids of the documents that answer each.
        filter
            As in a call.

        Raises
        ------
        ValueError
            As `shared_core.tuning.tune`.
        """
        queries = [self._query(check_query(question)) for question in questions]
        id_of = None
        if isinstance(self.index, VectorStoreEngine) and self.index._unnamed:
            id_of = self.index.stored_id
        tuned = tune(self.caus, self.index, queries, relevant, where=filter, id_of=id_of)
        chosen = {name: getattr(tuned, name) for name in ("alpha", "hit_rates", "tuning")}
        return self.model_copy(update=chosen)

    def _query(self, text: str) -> Query:
        return Query(text, None if self.embeddings is None else self.embeddings.embed_query(text))

    async def _aquery(self, text: str) -> Query:
        if self.embeddings is None:
            return Query(text)
        return Query(text, await self.embeddings.aembed_query(text))

    def _documents(self, found: Arrangement) -> list[Document]:
        documents = documents_of(found, include_scores=self.include_scores)
        if self.embeddings is None and isinstance(self.index, VectorStoreEngine):
            for document in documents:
                document.id = self.index.stored_id(document.id)
        return documents

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
        for together. Each is a run that reports its part of the result. The first failure is
        raised at once; with `return_exceptions` each query is then tried by itself.
        """
        if not self._searches_together(inputs):
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        configs = get_config_list(config, len(inputs))
        try:
            limit = configs[0].get("max_concurrency")
            with ContextThreadPoolExecutor(max_workers=limit) as executor:
                queries = [*executor.map(self._query, inputs)]
            found = self._search(queries, **kwargs)
        except Exception:
            if not return_exceptions:
                raise
            return super().batch(inputs, config, return_exceptions=True, **kwargs)
        kwargs["batched"] = dict(zip(inputs, found, strict=True))
        # In this thread: a task for each would take longer than the search.
        return [self.invoke(*each, **kwargs) for each in zip(inputs, configs, strict=True)]

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
        if self._searches_together(inputs):
            limit = get_config_list(config, len(inputs))[0].get("max_concurrency")
            try:
                queries = await gathered(self._aquery, inputs, limit)
                found = await run_in_executor(None, partial(self._search, queries, **kwargs))
                kwargs["batched"] = dict(zip(inputs, found, strict=True))
            except Exception:
                if not return_exceptions:
                    raise
        return await super().abatch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    def _searches_together(self, queries: Sequence[object]) -> bool:
        several = len(queries) > 1 and all(isinstance(query, str) for query in queries)
        return several and not self.index.embeds

    def _search(self, queries: Sequence[Query], **options: Any) -> list[Arrangement]:
        return self.caus.search(self.index, queries, **_call_options(**options))

    @override
    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        params = LangSmithRetrieverParams(ls_retriever_name="caus")
        embeddings = self.embeddings
        if embeddings is None and isinstance(self.index, VectorStoreEngine):
            params["ls_vector_store_provider"] = self.index.name
            embeddings = self.index.vector_store.embeddings
        if embeddings is not None:
            params["ls_embedding_provider"] = type(embeddings).__name__
        return params


def _call_options(*, filter: Where = None, **options: Any) -> dict[str, Any]:
    """Return the options of a call as `CAUS.search` takes them; TypeError for those of no call."""
    if others := options.keys() - {"k", "fetch_k", "alpha"}:
        raise TypeError(
            f"a call takes k, fetch_k, alpha and filter, got {', '.join(sorted(others))}: "
            "set other options by retriever.model_copy(update=...)"
        )
    return {**options, "where": filter}
