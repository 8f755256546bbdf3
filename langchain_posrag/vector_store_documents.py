"""The documents of a vector store and of the sparse leg beside it, kept alike."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore
from typing_extensions import override

from langchain_posrag.documents import document_of, with_id
from langchain_posrag.known_stores import known
from langchain_posrag.legs import Legs
from langchain_posrag.sparse_leg import Checked, SparseLeg
from langchain_posrag.vector_stores import as_added

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VectorStoreDocuments(Legs):
    """The half of `VectorStoreLegs` that adds, replaces, deletes and reads back; see there.

    What is awaited asks nothing of the store but what is awaited too.
    """

    store: VectorStore
    sparse: SparseLeg

    @override
    def add(self, documents: Sequence[Document]) -> list[str]:
        named, checked = self._named(documents)
        present = self._stored(_ids_of(documents))
        self._check_replacing(present)
        ids = self.store.add_documents(named)
        self._record(named, checked, ids, present)
        return ids

    @override
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        named, checked = await run_in_executor(None, self._named, documents)
        present = await self._astored(_ids_of(documents))
        self._check_replacing(present)

        async def write() -> list[str]:
            ids = await self.store.aadd_documents(named)
            await run_in_executor(None, self._record, named, checked, ids, present)
            return ids

        return await finished(write())

    def _named(self, documents: Sequence[Document]) -> tuple[list[Document], Checked]:
        """Return copies with ids, and what the sparse leg read; raise what it would raise."""
        named = [with_id(document) for document in documents]
        return named, self.sparse.check(named)

    def _check_replacing(self, present: Mapping[str, Document]) -> None:
        if present and not known(self.store).replaces:
            raise ValueError(
                f"{type(self.store).__name__} cannot replace documents: delete {[*present]} first"
            )

    def _record(
        self,
        named: Sequence[Document],
        checked: Checked,
        ids: Sequence[str],
        replaced: Mapping[str, Document],
    ) -> None:
        """Take into the sparse leg, which may know the replaced ones without their ids."""
        self.sparse.add(_renamed(named, ids), checked, replaced=replaced.values())

    @override
    def delete(self, ids: Sequence[str]) -> list[str]:
        stored, known = self._stored(ids), self._known(ids)
        if stored:
            self._check_deleted(stored, self.store.delete([*stored]))
        return self._forget(ids, stored, known)

    @override
    async def adelete(self, ids: Sequence[str]) -> list[str]:
        stored, known = await self._astored(ids), await run_in_executor(None, self._known, ids)

        async def write() -> list[str]:
            if stored:
                self._check_deleted(stored, await self.store.adelete([*stored]))
            return await run_in_executor(None, self._forget, ids, stored, known)

        return await finished(write())

    def _check_deleted(self, stored: Mapping[str, Document], answer: bool | None) -> None:
        if answer is False:
            raise RuntimeError(f"{type(self.store).__name__} did not delete {[*stored]}")

    def _forget(
        self, ids: Sequence[str], stored: Mapping[str, Document], known: Mapping[str, Document]
    ) -> list[str]:
        """Delete from the sparse leg; return the ids that either leg had."""
        self.sparse.delete([*stored.values(), *known.values()])
        return [id_ for id_ in dict.fromkeys(ids) if id_ in stored or id_ in known]

    @override
    def get(self, ids: Sequence[str]) -> list[Document]:
        return _copies(ids, {**self._known(ids), **self._stored(ids)})

    @override
    async def aget(self, ids: Sequence[str]) -> list[Document]:
        stored, known = await self._astored(ids), await run_in_executor(None, self._known, ids)
        return _copies(ids, {**known, **stored})

    def _known(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return what the sparse leg has, by id."""
        passages = [passage for id_ in ids if (passage := self.sparse.get(id_)) is not None]
        return {passage.id: document_of(passage) for passage in passages}

    def _stored(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return what the store has, by id; what the sparse leg has if the store cannot tell."""
        if not ids:  # for which some stores raise
            return {}
        try:
            return _by_id(as_added(self.store, self.store.get_by_ids([*ids])))
        except NotImplementedError:
            return self._known(ids)

    async def _astored(self, ids: Sequence[str]) -> dict[str, Document]:
        if not ids:
            return {}
        try:
            return _by_id(as_added(self.store, await self.store.aget_by_ids([*ids])))
        except NotImplementedError:
            return await run_in_executor(None, self._known, ids)


_unfinished: set[asyncio.Task[Any]] = set()


async def finished(writing: Coroutine[Any, Any, T]) -> T:
    """Await what writes into both legs; where the caller is cancelled, it goes on by itself.

    Cancelled between the legs, it would leave a document in one of them.
    """
    task = asyncio.ensure_future(writing)
    _unfinished.add(task)  # which the event loop itself holds weakly
    task.add_done_callback(_unfinished.discard)
    return await asyncio.shield(task)


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
