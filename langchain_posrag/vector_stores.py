"""Any LangChain vector store as the dense leg of an engine, with BM25 next to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from langchain_posrag.documents import check_documents, document_of, id_of, passage_of
from langchain_posrag.store_capabilities import StoreCapabilities, capabilities_of
from shared_core import Passage
from shared_core.checking import check_bool
from shared_core.engines.store import Call, Hits, Store, StoreEngine, is_native
from shared_core.index import PassageIndex, Tokenizer, Variant, Where
from shared_core.index.metadata import conditions, predicate
from shared_core.types import Query
from shared_core.vectors import query_similarities

DEEPER = 4
"""Factor by which a store is asked for more each time a filter left too few: few repetitions."""


class LangChainStore(Store):
    """A LangChain vector store, as an engine asks it."""

    def __init__(self, vector_store: VectorStore, *, rescores: bool) -> None:
        self.vector_store, self.rescores = vector_store, rescores
        self.name = type(vector_store).__name__
        self.gets = _overrides(vector_store, "get_by_ids", "aget_by_ids")
        self.replaces = self.capabilities.replaces

    @property
    def capabilities(self) -> StoreCapabilities:
        """What the store can do; looked up, since functions cannot be pickled."""
        return capabilities_of(self.vector_store)

    async def search(self, call: Call, query: Query, depth: int, where: Any) -> Hits:
        """Search; ask for more while too few hits pass a filter that the store cannot take."""
        native = is_native(where) and self.capabilities.function is None
        passes, store = predicate(None if native else where), self.vector_store
        given = {"k": depth, self.capabilities.argument: where}
        arguments = given if native else self._arguments(depth, where)
        plain, awaited = store.similarity_search_with_score, store.asimilarity_search_with_score

        def passing(found: Sequence[tuple[Document, float]]) -> Hits:
            kept = [hit for hit in found if passes(hit[0].metadata)][:depth]
            return [(self.passage_of(document), score) for document, score in kept]

        while arguments["k"]:
            found = await call(plain, awaited, query.text, **arguments)
            hits = await call(passing, None, found)
            if len(hits) == min(depth, len(found)) or len(found) < arguments["k"]:
                return hits
            arguments["k"] *= DEEPER
        return []

    def _arguments(self, depth: int, where: Where) -> dict[str, Any]:
        """Return what to search with at first: how deep, 0 if nothing can pass, and a filter."""
        can, store, given = self.capabilities, self.vector_store, None
        everything = depth if can.size is None else max(1, can.size(store))
        arguments: dict[str, Any] = {"k": min(depth, everything)}
        if where is not None and can.function is not None:
            given = can.function(predicate(where))
        if isinstance(where, Mapping):
            wanted, ranges = conditions(where)
            if not all(wanted.values()):
                return {"k": 0}
            if where and can.function is None:
                given = can.filter(store, wanted, ranges)
        if given is not None:
            arguments[can.argument] = given
            if can.size is not None:
                arguments["fetch_k"] = everything
        return arguments

    async def rescore(self, call: Call, query: Query, found: Sequence[Passage]) -> list[float]:
        """Embed the query and passages; awaited, side by side."""
        model: Any = self.vector_store.embeddings
        texts = [passage.text for passage in found]

        def embed() -> tuple[Any, Any]:
            return model.embed_query(query.text), model.embed_documents(texts)

        async def aembed() -> tuple[Any, Any]:
            both = model.aembed_query(query.text), model.aembed_documents(texts)
            return await asyncio.gather(*both)

        asked, vectors = await call(embed, aembed)
        return query_similarities(asked, vectors, len(found))

    async def add(self, call: Call, passages: Sequence[Passage]) -> list[str]:
        """Add documents, whose ids some stores take as an argument alone."""
        store, documents = self.vector_store, [*map(document_of, passages)]
        given = [passage.id for passage in passages]
        ids = await call(store.add_documents, store.aadd_documents, documents, ids=given)
        return [*map(str, ids)]

    async def delete(self, call: Call, ids: Sequence[str]) -> None:
        """Delete documents; RuntimeError if the store says that it did not."""
        store, keys = self.vector_store, self._keys(ids)
        if await call(store.delete, store.adelete, keys) is False:
            raise RuntimeError(f"{self.name} did not delete {[*ids]}")

    async def get(self, call: Call, ids: Sequence[str]) -> list[Passage]:
        """Return documents by id."""
        store, keys = self.vector_store, self._keys(ids)
        return [*map(self.passage_of, await call(store.get_by_ids, store.aget_by_ids, keys))]

    def _keys(self, ids: Sequence[str]) -> list[Any]:
        """Return by what the store gets the documents of ids."""
        return [self.capabilities.id(self.vector_store, id) for id in ids]

    def passage_of(self, document: Document) -> Passage:
        """Return a document of the store as a passage, without the metadata that the store adds."""
        added = self.capabilities.added_metadata
        if document.id is not None or not added or added[0] not in document.metadata:
            return passage_of(document, document.id or "")
        found = passage_of(document, str(document.metadata[added[0]]))
        metadata = {key: value for key, value in found.metadata.items() if key not in added}
        return Passage(found.id, found.text, metadata)


class VectorStoreEngine(StoreEngine):
    """A LangChain vector store, and BM25 over the same documents; see `StoreEngine`.

    A filter works over any store. InMemoryVectorStore and FAISS take every filter, Chroma, PGVector
    and Qdrant every mapping of texts and finite numbers, Milvus those of texts and integers, other
    stores a mapping of single values. What a store cannot take, or lets through nevertheless, is
    filtered here, and the store asked for more until enough documents pass or it has no more: a
    function that few documents pass makes it read much of a large store. A filter that is neither a
    function nor a mapping of metadata keys, such as Qdrant's ``models.Filter``, an expression for
    Milvus or Chroma's ``{"$or": [...]}``, goes to the store as it is. What it raises is raised.

    A document of `sparse` that has no id is found under that of the store.

    Parameters
    ----------
    vector_store
        The dense leg.
    sparse
        Its documents; or LangChain's BM25Retriever, or a `shared_core.index.PassageIndex`. None:
        the documents are read out of the store.
    higher_is_better
        Direction of the store's scores; None if it is known.
    rescore
        Embed, for each query, what only BM25 found, with the store's embeddings; all that were
        found, if the store's scores are not known to be cosines. Then the explanation tells the
        question and its nearest cosine, too.
    variant, tokenizer
        As in `PassageIndex`; only where `sparse` are documents.
    id_key
        Key of the metadata by which documents of `sparse` and the store are the same, as in
        LangChain's EnsembleRetriever. None: by their ids, or else by their text.

    Raises
    ------
    ValueError
        If no document has `id_key`, the store cannot search with scores, their direction is
        unknown, an option is no bool, `sparse` is something else or one document, or None where the
        store cannot list its documents, or the store has no embeddings to rescore with.
    """

    def __init__(
        self,
        vector_store: VectorStore,
        sparse: object = None,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        id_key: str | None = None,
    ) -> None:
        store = LangChainStore(vector_store, rescores=check_bool(rescore, "rescore"))
        if not _overrides(
            vector_store, "similarity_search_with_score", "asimilarity_search_with_score"
        ):
            raise ValueError(
                f"{store.name} has no similarity_search_with_score, whose scores are fused: use a "
                "store that has it, as retriever.vectorstore, or CAUSRetriever.from_documents"
            )
        scores = store.capabilities.scores(vector_store)
        if higher_is_better is None and scores is None:
            raise ValueError(
                f"whether a higher score of {store.name} is better is not known: pass "
                "higher_is_better=True if it returns similarities, False if it returns distances"
            )
        if rescore and vector_store.embeddings is None:
            raise ValueError(f"{store.name} has no embeddings to rescore with: leave rescore out")
        self.vector_store, self.name = vector_store, store.name
        listed = sparse is None
        if listed:
            if store.capabilities.documents is None:
                raise ValueError(
                    f"{store.name} does not list its documents for BM25: pass sparse=documents"
                )
            sparse = store.capabilities.documents(vector_store)
        self._unnamed: dict[str, str] = {}
        super().__init__(
            store,
            self._bm25_of(sparse, variant, tokenizer),
            higher_is_better=scores != "distance" if higher_is_better is None else higher_is_better,
            cosines=rescore and scores == "cosine",
            listed=listed,
            id_key=id_key,
        )
        if self._unnamed:
            self._same_ids = False

    def stored_id(self, id: str | None) -> str | None:
        """Return the store's id of a document that had none, as far as one was found."""
        return (id and self._unnamed.get(id)) or id

    def _bm25_of(
        self, given: object, variant: Variant, tokenizer: Tokenizer | None
    ) -> PassageIndex:
        if isinstance(given, Iterable) and not isinstance(given, str | BaseRetriever):
            index = PassageIndex(variant=variant, tokenizer=tokenizer)
            index.add(self._passages(given))
            return index
        if tokenizer is not None or variant != "lucene":
            raise ValueError(
                "variant= and tokenizer= are for documents; sparse= is already an index"
            )
        if isinstance(given, PassageIndex):
            return given
        bm25, documents = getattr(given, "vectorizer", None), getattr(given, "docs", None)
        if bm25 is None or documents is None:
            raise ValueError(
                f"sparse= takes documents, a BM25Retriever or a PassageIndex, got {given!r}"
            )
        if type(bm25).__name__ != "BM25Okapi":
            raise ValueError(
                f"of BM25Retrievers only those with BM25Okapi are taken, got "
                f"{type(bm25).__name__}: give the documents"
            )
        split: Tokenizer = given.preprocess_func  # type: ignore[attr-defined]
        index = PassageIndex(
            variant="okapi", k1=bm25.k1, b=bm25.b, epsilon=bm25.epsilon, tokenizer=split
        )
        index.add(self._passages(documents))
        return index

    def _passages(self, documents: Iterable[Document]) -> list[Passage]:
        passages = []
        for document in check_documents(documents, "sparse"):
            passages.append(passage_of(document, id_of(document)))
            if document.id is None:
                self._unnamed[passages[-1].id] = ""
        return passages

    def _known(self, hits: Sequence[Passage]) -> dict[int, Passage]:
        known = super()._known(hits)
        for at, twin in known.items():
            if twin.id in self._unnamed:
                self._unnamed[twin.id] = hits[at].id
        return known


def _overrides(store: VectorStore, *names: str) -> bool:
    """Return whether a store has one of these methods, which LangChain's base class only names."""
    return any(
        getattr(type(store), name, None) not in (None, vars(VectorStore)[name]) for name in names
    )
