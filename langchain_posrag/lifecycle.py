"""Where a retriever comes from, and how it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, Unpack

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict

from langchain_posrag.indexing import IndexedDocuments
from langchain_posrag.sparse_leg import as_sparse_leg
from langchain_posrag.vector_store_legs import VectorStoreLegs
from langchain_posrag.vector_stores import check_scored_search
from langchain_posrag.vector_stores import higher_is_better as known_direction
from shared_core import HybridIndex
from shared_core.checking import check_bool, check_several
from shared_core.index import Tokenizer
from shared_core.index.dense.view import Dense, Metric
from shared_core.index.sparse.bm25 import Variant
from shared_core.options import CAUSArguments, decode_options, encode_caus

_ADAPTER = "langchain_posrag"

T = TypeVar("T")


class RetrieverArguments(CAUSArguments, total=False):
    """Keyword arguments of `CAUSRetriever` besides its legs."""

    include_scores: bool
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class IndexArguments(RetrieverArguments, total=False):
    """Keyword arguments of a `CAUSRetriever` that builds its own index."""

    metric: Metric
    dense: Dense
    variant: Variant
    tokenizer: Tokenizer | None


class RetrieverLifecycle(IndexedDocuments):
    """The half of `CAUSRetriever` that builds, saves and loads one; see there."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

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
        """Embed and index documents; none makes an empty retriever to add to.

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
            If an option is unknown or out of range, `documents` is one instead of several, an id
            occurs twice, or an embedding is NaN, infinite or of another dimension.
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
        """Do what `from_documents` does with texts, and the metadata and id of each if given.

        Raises
        ------
        ValueError
            As `from_documents`, and if there are not as many `metadatas` or `ids` as texts.
        """
        check_several(texts, "texts")
        texts = [*texts]
        columns = _as_many("metadatas", metadatas, texts), _as_many("ids", ids, texts)
        documents = [
            Document(page_content=text, metadata=metadata or {}, id=id_)
            for text, metadata, id_ in zip(texts, *columns, strict=True)
        ]
        return cls.from_documents(documents, embeddings, **options)

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
        """Search any LangChain vector store as the dense leg, with BM25 beside it.

        The store's raw scores are used. What only the sparse leg finds has none, and stands at
        the lowest that the store gave; the sparse score is exact for every document. Equal
        scores keep the order of the store, with what only the sparse leg finds behind.

        A filter holds over any store. InMemoryVectorStore and FAISS are told every filter, Chroma
        and PGVector every mapping of texts and finite numbers, other stores a mapping of single
        values, as it is. What a store cannot be told, refuses (which warns) or lets through
        nevertheless is dropped here, and the store asked for more until enough passes or it has
        no more: over a large store a function that few documents pass reads much of it.

        Neighbours for `expand` are those among the documents of the sparse leg; the store's
        vectors are out of reach, so continuity is unknown and every change of heading stops.

        Parameters
        ----------
        store
            Needs ``similarity_search_with_score``, or its awaited form for `ainvoke` alone.
        sparse
            The store's documents, which are indexed here; or LangChain's BM25Retriever, which
            is converted; or a `langchain_posrag.sparse_leg.SparseLeg`.
        higher_is_better
            True if the store returns similarities, False if it returns distances. None: as is
            known of InMemoryVectorStore, FAISS, Chroma, PGVector and Qdrant.
        variant, tokenizer
            As in `shared_core.BM25Index`; only where `sparse` are documents.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If the store cannot search with scores, their direction is not known or
            `higher_is_better` is no bool, `sparse` is something else or one document, or an
            option is unknown or out of range.
        """
        check_scored_search(store)
        if higher_is_better is None:
            higher_is_better = known_direction(store)
        check_bool(higher_is_better, "higher_is_better")
        leg = as_sparse_leg(sparse, variant=variant, tokenizer=tokenizer)
        return cls(index=VectorStoreLegs(store, leg, higher_is_better), **options)

    def save(self, path: str | Path) -> None:
        """Write passages, vectors and options to a folder, at once or not at all; no pickle.

        Raises
        ------
        ValueError
            If the retriever searches a vector store, which keeps its own documents, or a
            document's metadata is not JSON. A tokeniser in `expand` is not saved, and `load`
            asks for `expand` again.
        IndexFormatError
            If the folder holds other things than an index.
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
        IndexFormatError
            If the folder is not an index.
        CorruptIndexError
            If a file is missing, truncated or altered.
        EmbeddingMismatchError
            If `embeddings` is not the model the documents were embedded with.
        ValueError
            If `embeddings` is none, or an option is unknown or out of range.
        """
        index = HybridIndex.load(path, tokenizer=tokenizer)
        saved = decode_options({**index.extra.get(_ADAPTER, {}), **options})
        retriever = cls(index=index, embeddings=embeddings, **saved)
        if verify:
            index.verify_embeddings(lambda text: embeddings.embed_documents([text])[0])
        return retriever


def _as_many(name: str, values: Iterable[T] | None, texts: Sequence[str]) -> list[T | None]:
    """Return one of the values for each text; None for each if none are given."""
    if values is None:
        return [None] * len(texts)
    check_several(values, name)
    listed: list[T | None] = [*values]
    if len(listed) != len(texts):
        raise ValueError(f"got {len(texts)} texts and {len(listed)} {name}")
    return listed
