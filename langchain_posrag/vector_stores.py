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
from shared_core.engines.store import Hits, Store, StoreEngine
from shared_core.index import PassageIndex, Tokenizer, Variant
from shared_core.index.metadata import predicate, wanted_values
from shared_core.types import Query
from shared_core.vectors import query_similarities

DEEPER = 4
"""Factor by which a store is asked for more each time a filter left too few: few repetitions."""


class VectorStoreEngine(StoreEngine):
    """A LangChain vector store, and BM25 over the same documents; see `StoreEngine`.

    A filter works over any store. InMemoryVectorStore and FAISS take every filter, Chroma, PGVector
    and Qdrant every mapping of texts and finite numbers, other stores a mapping of single values.
    What a store cannot take, or lets through nevertheless, is filtered here, and the store asked
    for more until enough documents pass or it has no more: a function that few documents pass makes
    it read much of a large store. A filter that is neither a mapping nor a function, such as
    Qdrant's ``models.Filter``, goes to the store as it is. What a store raises is raised.

    A document of `sparse` that has no id is found under that of the store.

    Parameters
    ----------
    vector_store
        The dense leg.
    sparse
        Its documents; or LangChain's BM25Retriever, or a `shared_core.index.PassageIndex`.
    higher_is_better
        Direction of the store's scores; None if it is known.
    rescore
        Embed, for each query, what only BM25 found, with the store's embeddings; all that were
        found, if the store's scores are not known to be cosines. Then the explanation tells the
        question and its nearest cosine, too.
    drop_deleted
        As in `StoreEngine`.
    variant, tokenizer
        As in `BM25Index`; only where `sparse` are documents.

    Raises
    ------
    ValueError
        If the store cannot search with scores, their direction is unknown, an option is no bool,
        `sparse` is something else or one document, or the store has no embeddings to rescore with,
        or no ``get_by_ids`` to tell what was deleted.
    """

    def __init__(
        self,
        vector_store: VectorStore,
        sparse: object,
        *,
        higher_is_better: bool | None = None,
        rescore: bool = False,
        drop_deleted: bool = False,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.vector_store = vector_store
        if not _overrides(
            vector_store, "similarity_search_with_score", "asimilarity_search_with_score"
        ):
            raise ValueError(
                f"{self.name} has no similarity_search_with_score, whose scores are fused: use a "
                "store that has it, or CAUSRetriever.from_documents"
            )
        if higher_is_better is None:
            higher_is_better = self.capabilities.higher_is_better(vector_store)
        if higher_is_better is None:
            raise ValueError(
                f"whether a higher score of {self.name} is better is not known: pass "
                "higher_is_better=True if it returns similarities, False if it returns distances"
            )
        if check_bool(rescore, "rescore") and vector_store.embeddings is None:
            raise ValueError(f"{self.name} has no embeddings to rescore with: leave rescore out")
        gets = _overrides(vector_store, "get_by_ids", "aget_by_ids")
        self._unnamed: dict[str, str] = {}
        super().__init__(
            Store(
                search=self._search,
                asearch=self._asearch,
                rescore=self._rescore if rescore else None,
                arescore=self._arescore if rescore else None,
                add=self._add,
                aadd=self._aadd,
                delete=self._delete,
                adelete=self._adelete,
                get=self._get if gets else None,
                aget=self._aget if gets else None,
            ),
            self._bm25_of(sparse, variant, tokenizer),
            higher_is_better=higher_is_better,
            cosines=rescore and self.capabilities.cosines(vector_store),
            drop_deleted=drop_deleted,
        )

    @property
    def capabilities(self) -> StoreCapabilities:
        """What the store can do."""
        return capabilities_of(self.vector_store)

    @property
    def name(self) -> str:
        """Class of the store."""
        return type(self.vector_store).__name__

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
        split: Tokenizer = given.preprocess_func  # type: ignore[attr-defined]
        return PassageIndex.from_rank_bm25(bm25, self._passages(documents), tokenizer=split)

    def _passages(self, documents: Iterable[Document]) -> list[Passage]:
        passages = []
        for document in check_documents(documents):
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

    def _search(self, query: Query, depth: int, where: Any) -> Hits:
        asked, store = _Deepening(self, depth, where), self.vector_store
        while asked.arguments is not None:
            asked.answered(store.similarity_search_with_score(query.text, **asked.arguments))
        return asked.hits

    async def _asearch(self, query: Query, depth: int, where: Any) -> Hits:
        asked, store = _Deepening(self, depth, where), self.vector_store
        while asked.arguments is not None:
            hits = await store.asimilarity_search_with_score(query.text, **asked.arguments)
            await asyncio.to_thread(asked.answered, hits)
        return asked.hits

    def _rescore(self, query: Query, passages: Sequence[Passage]) -> list[float]:
        model: Any = self.vector_store.embeddings
        vectors = model.embed_documents([passage.text for passage in passages])
        return query_similarities(model.embed_query(query.text), vectors, len(passages))

    async def _arescore(self, query: Query, passages: Sequence[Passage]) -> list[float]:
        model: Any = self.vector_store.embeddings
        asked, vectors = await asyncio.gather(
            model.aembed_query(query.text),
            model.aembed_documents([passage.text for passage in passages]),
        )
        return query_similarities(asked, vectors, len(passages))

    def _add(self, passages: Sequence[Passage]) -> list[str]:
        if not self.capabilities.replaces:
            self._check_new(self._get([passage.id for passage in passages]))
        return self.vector_store.add_documents([*map(document_of, passages)])

    async def _aadd(self, passages: Sequence[Passage]) -> list[str]:
        if not self.capabilities.replaces:
            self._check_new(await self._aget([passage.id for passage in passages]))
        return await self.vector_store.aadd_documents([*map(document_of, passages)])

    def _check_new(self, present: Sequence[Passage]) -> None:
        if present:
            ids = [passage.id for passage in present]
            raise ValueError(f"{self.name} cannot replace documents: delete {ids} first")

    def _delete(self, ids: Sequence[str]) -> None:
        self._check_deleted(ids, self.vector_store.delete([*ids]))

    async def _adelete(self, ids: Sequence[str]) -> None:
        self._check_deleted(ids, await self.vector_store.adelete([*ids]))

    def _check_deleted(self, ids: Sequence[str], answer: bool | None) -> None:
        if answer is False:
            raise RuntimeError(f"{self.name} did not delete {[*ids]}")

    def _get(self, ids: Sequence[str]) -> list[Passage]:
        return [*map(self.passage_of, self.vector_store.get_by_ids([*ids]))]

    async def _aget(self, ids: Sequence[str]) -> list[Passage]:
        return [*map(self.passage_of, await self.vector_store.aget_by_ids([*ids]))]

    def passage_of(self, document: Document) -> Passage:
        """Return a document of the store as a passage, without the metadata that the store adds."""
        added = self.capabilities.added_metadata
        if document.id is not None or not added or added[0] not in document.metadata:
            return passage_of(document, document.id or "")
        found = passage_of(document, str(document.metadata[added[0]]))
        metadata = {key: value for key, value in found.metadata.items() if key not in added}
        return Passage(found.id, found.text, metadata)


class _Deepening:
    """The next `arguments` to search a store with, None once it is done, and the `hits` so far."""

    def __init__(self, engine: VectorStoreEngine, depth: int, where: Any) -> None:
        self.hits: list[tuple[Passage, float | None]] = []
        self._engine, self._depth, self._where = engine, depth, where
        ours = where is None or callable(where) or isinstance(where, Mapping)
        self._passes = predicate(where if ours else None)
        can, store = engine.capabilities, engine.vector_store
        given = can.filter(store, where) if ours and where is not None else where
        self.arguments: dict[str, Any] | None = {"k": depth}
        if given is not None:
            self.arguments["filter"] = given
        if can.size is not None:
            everything = max(1, can.size(store))
            self.arguments["k"] = min(depth, everything)
            if given is not None:
                self.arguments["fetch_k"] = everything
        if isinstance(where, Mapping) and not all(map(len, map(wanted_values, where.values()))):
            self.arguments = None  # an empty list of values: nothing passes

    def answered(self, hits: Sequence[tuple[Document, float]]) -> None:
        """Keep the hits that pass; ask for more if too few do."""
        asked, self.arguments = self.arguments, None
        passing = [hit for hit in hits if self._passes(hit[0].metadata)][: self._depth]
        self.hits = [(self._engine.passage_of(document), score) for document, score in passing]
        if asked and len(passing) < min(self._depth, len(hits)) and len(hits) >= asked["k"]:
            self.arguments = {**asked, "k": DEEPER * asked["k"]}


def _overrides(store: VectorStore, *names: str) -> bool:
    """Return whether a store has one of these methods, which LangChain's base class only names."""
    return any(
        getattr(type(store), name, None) not in (None, vars(VectorStore)[name]) for name in names
    )
