"""Any LangChain vector store as the dense leg, with BM25 next to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from langchain_posrag.documents import document_of, with_id
from langchain_posrag.finishing import finish
from langchain_posrag.known_stores import store_facts
from langchain_posrag.legs import CallOptions, Legs
from langchain_posrag.sparse_leg import Checked, SparseLeg, as_sparse_leg
from langchain_posrag.store_search import Hits, afind, find
from langchain_posrag.vector_stores import (
    check_scored_search,
    direction_of_scores,
    strip_added_metadata,
)
from shared_core import CAUS, Arrangement, Passage
from shared_core.checking import check_bool
from shared_core.foreign_leg import fuse_foreign
from shared_core.index import Tokenizer
from shared_core.index.sparse.bm25 import Variant


@dataclass(frozen=True, slots=True)
class VectorStoreLegs(Legs):
    """A vector store as the dense leg, and a sparse leg over the same documents.

    The store gives raw scores to the documents it finds and to no others: what only the sparse
    leg finds counts with the lowest of them. The sparse score is exact for every document.
    Documents of equal score keep the order of the store, followed by those of the sparse leg.

    A filter works over any store. InMemoryVectorStore and FAISS take every filter, Chroma and
    PGVector every mapping of texts and finite numbers, other stores a mapping of single values.
    What a store cannot take, refuses (which warns) or lets through nevertheless is filtered here,
    and the store asked for more until enough documents pass or it has no more: a function that
    few documents pass makes it read much of a large store.

    Neighbours for ``expand`` are those among the documents of the sparse leg. The store's vectors
    are out of reach, so continuity is unknown and every change of heading stops.

    Async methods call nothing but async methods of the store. Two writers that change the same id
    at once may leave the version of one in the store and that of the other in the sparse leg:
    write an id from one place at a time, or write it again.

    Attributes
    ----------
    store
        The dense leg.
    sparse
        The sparse leg.
    higher_is_better
        Direction of the store's scores; False for distances.
    """

    store: VectorStore
    sparse: SparseLeg
    higher_is_better: bool

    @classmethod
    def over(
        cls,
        store: VectorStore,
        sparse: object,
        *,
        higher_is_better: bool | None,
        variant: Variant,
        tokenizer: Tokenizer | None,
    ) -> Self:
        """Check a store, and index documents for the sparse leg if it is given as such.

        Parameters and errors are those of `CAUSRetriever.from_vectorstore`.
        """
        check_scored_search(store)
        if higher_is_better is None:
            higher_is_better = direction_of_scores(store)
        check_bool(higher_is_better, "higher_is_better")
        leg = as_sparse_leg(sparse, variant=variant, tokenizer=tokenizer)
        return cls(store, leg, higher_is_better)

    @override
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = caus.depth(options["k"], options["fetch_k"]), options["where"]
        hits = find(self.store, query, depth, where)
        sparse = self.sparse.search(query, depth, where)
        return self._fuse(caus, query, hits, sparse, options)

    @override
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = caus.depth(options["k"], options["fetch_k"]), options["where"]
        hits, sparse = await asyncio.gather(
            afind(self.store, query, depth, where),
            run_in_executor(None, self.sparse.search, query, depth, where),
        )
        return await run_in_executor(None, self._fuse, caus, query, hits, sparse, options)

    def _fuse(
        self, caus: CAUS, query: str, hits: Hits, sparse: Sequence[Passage], options: CallOptions
    ) -> Arrangement:
        """Fuse the hits of both legs by the keys of the sparse leg; the store's come first."""
        found = (
            (Passage(document.id or "", document.page_content, document.metadata), score)
            for document, score in hits
        )
        source = None
        if caus.expand is not None:
            source = self.sparse.neighbours(caus.chunk_keys, options["where"])
        return fuse_foreign(
            caus,
            ((*self.sparse.identified(passage), score) for passage, score in found),
            map(self.sparse.identified, sparse),
            partial(self.sparse.scores, query),
            higher_is_better=self.higher_is_better,
            passage_of=_itself,
            source=source,
            k=options["k"],
            alpha=options["alpha"],
        )

    @override
    def add(self, documents: Sequence[Document]) -> list[str]:
        if not documents:  # some stores raise for none
            return []
        named, checked = self._with_ids(documents)
        present = self._stored(_ids_of(documents))
        self._check_replacing(present)
        ids = self.store.add_documents(named)
        self._add_to_sparse(named, checked, ids, present)
        return ids

    @override
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        if not documents:
            return []
        named, checked = await run_in_executor(None, self._with_ids, documents)
        present = await self._astored(_ids_of(documents))
        self._check_replacing(present)

        async def write() -> list[str]:
            ids = await self.store.aadd_documents(named)
            await run_in_executor(None, self._add_to_sparse, named, checked, ids, present)
            return ids

        return await finish(write())

    def _with_ids(self, documents: Sequence[Document]) -> tuple[list[Document], Checked]:
        """Return copies with ids, and the checked input of the sparse leg."""
        named = [with_id(document) for document in documents]
        return named, self.sparse.check(named)

    def _check_replacing(self, present: Mapping[str, Document]) -> None:
        if present and not store_facts(self.store).replaces:
            raise ValueError(
                f"{type(self.store).__name__} cannot replace documents: delete {[*present]} first"
            )

    def _add_to_sparse(
        self,
        named: Sequence[Document],
        checked: Checked,
        ids: Sequence[str],
        replaced: Mapping[str, Document],
    ) -> None:
        """Add to the sparse leg, which may hold the replaced documents without their ids."""
        self.sparse.add(_renamed(named, ids), checked, replaced=replaced.values())

    @override
    def delete(self, ids: Sequence[str]) -> list[str]:
        stored, known = self._stored(ids), self._in_sparse(ids)
        if stored:
            self._check_deleted(stored, self.store.delete([*stored]))
        return self._delete_from_sparse(ids, stored, known)

    @override
    async def adelete(self, ids: Sequence[str]) -> list[str]:
        stored, known = await self._astored(ids), await run_in_executor(None, self._in_sparse, ids)

        async def write() -> list[str]:
            if stored:
                self._check_deleted(stored, await self.store.adelete([*stored]))
            return await run_in_executor(None, self._delete_from_sparse, ids, stored, known)

        return await finish(write())

    def _check_deleted(self, stored: Mapping[str, Document], answer: bool | None) -> None:
        if answer is False:
            raise RuntimeError(f"{type(self.store).__name__} did not delete {[*stored]}")

    def _delete_from_sparse(
        self, ids: Sequence[str], stored: Mapping[str, Document], known: Mapping[str, Document]
    ) -> list[str]:
        """Delete from the sparse leg; return the ids that either leg had."""
        self.sparse.delete([*stored.values(), *known.values()])
        return [id_ for id_ in dict.fromkeys(ids) if id_ in stored or id_ in known]

    @override
    def get(self, ids: Sequence[str]) -> list[Document]:
        return _copies(ids, {**self._in_sparse(ids), **self._stored(ids)})

    @override
    async def aget(self, ids: Sequence[str]) -> list[Document]:
        stored, known = await self._astored(ids), await run_in_executor(None, self._in_sparse, ids)
        return _copies(ids, {**known, **stored})

    def _in_sparse(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents of the sparse leg by id."""
        passages = [passage for id_ in ids if (passage := self.sparse.get(id_)) is not None]
        return {passage.id: document_of(passage) for passage in passages}

    def _stored(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the documents of the store by id; if it cannot say, those of the sparse leg."""
        if not ids:  # some stores raise for none
            return {}
        try:
            return _by_id(strip_added_metadata(self.store, self.store.get_by_ids([*ids])))
        except NotImplementedError:
            return self._in_sparse(ids)

    async def _astored(self, ids: Sequence[str]) -> dict[str, Document]:
        if not ids:
            return {}
        try:
            return _by_id(strip_added_metadata(self.store, await self.store.aget_by_ids([*ids])))
        except NotImplementedError:
            return await run_in_executor(None, self._in_sparse, ids)


def _ids_of(documents: Sequence[Document]) -> list[str]:
    return [document.id for document in documents if document.id]


def _by_id(documents: Sequence[Document]) -> dict[str, Document]:
    return {str(document.id): document for document in documents}


def _copies(ids: Sequence[str], found: Mapping[str, Document]) -> list[Document]:
    return [with_id(found[id_]) for id_ in dict.fromkeys(ids) if id_ in found]


def _renamed(documents: Sequence[Document], ids: Sequence[str]) -> list[Document]:
    """Return the documents under the ids that the store gave them."""
    return [
        document.model_copy(update={"id": id_})
        for document, id_ in zip(documents, ids, strict=True)
    ]


def _itself(passage: Passage) -> Passage:
    return passage
