"""Any LangChain vector store as the dense leg, with BM25 beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from langchain_posrag.documents import document_of, with_id
from langchain_posrag.legs import CallOptions, Legs
from langchain_posrag.sparse_leg import SparseLeg, content_of
from langchain_posrag.vector_stores import replaces_documents, search_arguments
from shared_core import CAUS, Arrangement, Passage
from shared_core.index.metadata import Where, predicate
from shared_core.scoring.ranking import check_k

Hits = list[tuple[Document, float]]


@dataclass(frozen=True, slots=True)
class VectorStoreLegs(Legs):
    """A vector store searched beside a sparse leg.

    The store gives its raw scores to the documents it finds and to no others: what only the
    sparse leg finds stands at the dense leg's lowest score. The sparse score is exact for all.

    Attributes
    ----------
    store
        The dense leg.
    sparse
        The sparse leg, over the same documents.
    higher_is_better
        Direction of the store's scores; False for distances.
    """

    store: VectorStore
    sparse: SparseLeg
    higher_is_better: bool

    @override
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = _depth(caus, options), options["where"]
        arguments = search_arguments(self.store, depth, where)
        with ContextThreadPoolExecutor(max_workers=1) as executor:
            sparse = executor.submit(self.sparse.search, query, depth, where)
            hits = self.store.similarity_search_with_score(query, **arguments)
            return self._fuse(caus, query, hits, sparse.result(), options)

    @override
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = _depth(caus, options), options["where"]
        arguments = search_arguments(self.store, depth, where)
        hits, sparse = await asyncio.gather(
            self.store.asimilarity_search_with_score(query, **arguments),
            run_in_executor(None, self.sparse.search, query, depth, where),
        )
        return await run_in_executor(None, self._fuse, caus, query, hits, sparse, options)

    def _fuse(
        self, caus: CAUS, query: str, hits: Hits, sparse: Sequence[Passage], options: CallOptions
    ) -> Arrangement:
        pool, dense = self._pool(hits, sparse, options["where"])
        scores = self.sparse.scores(query, pool)
        ranking = caus.rank(dense, scores, k=options["k"], alpha=options["alpha"])
        ranking = replace(ranking, passages=[pool[i] for i in ranking.indices])
        if caus.expand is None:
            return caus.place(ranking)
        source = self.sparse.neighbours(caus.chunk_keys, options["where"])
        return caus.place_expanded(ranking, source)

    def _pool(
        self, hits: Hits, sparse: Sequence[Passage], where: Where
    ) -> tuple[list[Passage], list[float]]:
        """Return the union of both legs in insertion order, and its dense scores.

        A dense score that is missing is NaN; what the sparse leg does not know comes last.
        """
        passes = predicate(where)
        pool: dict[tuple[float, str], tuple[Passage, float]] = {}
        for document, score in hits:
            if passes(document.metadata):
                hit = Passage(document.id or "", document.page_content, document.metadata)
                value = float(score) if self.higher_is_better else -float(score)
                pool.setdefault(self._identity(hit), (self.sparse.named(hit), value))
        for passage in sparse:
            pool.setdefault(self._identity(passage), (passage, np.nan))
        ordered = [pool[identity] for identity in sorted(pool, key=lambda key: key[0])]
        return [passage for passage, _ in ordered], [score for _, score in ordered]

    def _identity(self, passage: Passage) -> tuple[float, str]:
        """Return what tells documents apart, in insertion order."""
        row = self.sparse.row_of(passage)
        return (np.inf, passage.id or content_of(passage)) if row is None else (row, "")

    @override
    def add(self, documents: Sequence[Document]) -> list[str]:
        named, replaced = self._checked(documents)
        ids = self.store.add_documents(named)
        self._record(named, ids, replaced)
        return ids

    @override
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        named, replaced = await run_in_executor(None, self._checked, documents)
        ids = await self.store.aadd_documents(named)
        await run_in_executor(None, self._record, named, ids, replaced)
        return ids

    def _checked(self, documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
        """Return copies with ids, and what they replace; raise what either leg would raise."""
        named = [with_id(document) for document in documents]
        self.sparse.check(named)
        present = self._stored([document.id for document in documents if document.id])
        if present and not replaces_documents(self.store):
            raise ValueError(
                f"{type(self.store).__name__} cannot replace documents: delete {[*present]} first"
            )
        return named, list(present.values())

    def _record(
        self, named: Sequence[Document], ids: Sequence[str], replaced: Sequence[Document]
    ) -> None:
        """Take into the sparse leg, which may know the replaced ones without their ids."""
        self.sparse.delete(replaced)
        self.sparse.add(_renamed(named, ids))

    @override
    def delete(self, ids: Sequence[str]) -> list[str]:
        stored, known = self._stored(ids), self._known(ids)
        if stored and self.store.delete(list(stored)) is False:
            raise RuntimeError(f"{type(self.store).__name__} did not delete {list(stored)}")
        self.sparse.delete([*stored.values(), *known.values()])
        return [id_ for id_ in dict.fromkeys(ids) if id_ in stored or id_ in known]

    @override
    def get(self, ids: Sequence[str]) -> list[Document]:
        found = {**self._known(ids), **self._stored(ids)}
        return [with_id(found[id_]) for id_ in dict.fromkeys(ids) if id_ in found]

    def _known(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return what the sparse leg has, by id."""
        passages = [passage for id_ in ids if (passage := self.sparse.get(id_)) is not None]
        return {passage.id: document_of(passage) for passage in passages}

    def _stored(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return what the store has, by id; what the sparse leg has if the store cannot tell."""
        try:
            return {str(document.id): document for document in self.store.get_by_ids(list(ids))}
        except NotImplementedError:
            return self._known(ids)


def _depth(caus: CAUS, options: CallOptions) -> int:
    k = caus.k if options["k"] is None else options["k"]
    fetch_k = caus.fetch_k if options["fetch_k"] is None else options["fetch_k"]
    return max(check_k(k), check_k(fetch_k, "fetch_k"))


def _renamed(documents: Sequence[Document], ids: Sequence[str]) -> list[Document]:
    """Return the documents under the ids that the store gave them."""
    return [
        document.model_copy(update={"id": id_})
        for document, id_ in zip(documents, ids, strict=True)
    ]
