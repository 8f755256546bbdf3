"""What a retriever searches: a dense and a sparse leg over the same passages."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.runnables.config import ContextThreadPoolExecutor
from typing_extensions import override

from langchain_posrag.documents import document_of, id_of, passage_of
from shared_core import CAUS, Arrangement, HybridIndex
from shared_core.index.hybrid import check_passages
from shared_core.index.metadata import Where
from shared_core.scoring.fusion import Alpha

Vector = Sequence[float]
A = TypeVar("A")
T = TypeVar("T")


class CallOptions(TypedDict):
    """What one call sets for itself; None leaves it as the retriever has it."""

    k: int | None
    fetch_k: int | None
    alpha: Alpha | None
    where: Where


def attempt(function: Callable[[A], T]) -> Callable[[A], T | Exception]:
    """Return a function that returns what `function` raises."""

    def attempted(argument: A) -> T | Exception:
        try:
            return function(argument)
        except Exception as error:
            return error

    return attempted


def aattempt(
    function: Callable[[A], Awaitable[T]],
) -> Callable[[A], Coroutine[None, None, T | Exception]]:
    """Do for a coroutine function what `attempt` does."""

    async def attempted(argument: A) -> T | Exception:
        try:
            return await function(argument)
        except Exception as error:
            return error

    return attempted


class Legs(ABC):
    """Both legs, and the documents behind them."""

    @abstractmethod
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Search both legs, fuse and place; a passage without an id of its own has id ``""``."""

    @abstractmethod
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Search like `search`, without holding up the event loop."""

    @abstractmethod
    def add(self, documents: Sequence[Document]) -> list[str]:
        """Add or replace documents in both legs, or in neither; return their ids."""

    @abstractmethod
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        """Add like `add`, with the embedding and the store awaited."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> list[str]:
        """Delete from both legs; return the ids that were there."""

    @abstractmethod
    async def adelete(self, ids: Sequence[str]) -> list[str]:
        """Delete like `delete`, with the store awaited."""

    @abstractmethod
    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return fresh copies of the documents that are there."""

    @abstractmethod
    async def aget(self, ids: Sequence[str]) -> list[Document]:
        """Get like `get`, with the store awaited."""


@dataclass(slots=True, kw_only=True)
class Embedding:
    """Embeds the queries of a batch, each by itself.

    Attributes
    ----------
    embeddings
        The model.
    go_on
        Whether to go on once one has failed.
    stopped
        Set once no further query may be embedded.
    """

    embeddings: Embeddings
    go_on: bool
    stopped: bool = False

    def one(self, query: str) -> Vector | Exception | None:
        """Return the vector, or what the model raised; None once embedding was stopped."""
        try:
            return None if self.stopped else self.embeddings.embed_query(query)
        except Exception as error:
            self.stopped = not self.go_on
            return error

    async def aone(self, query: str) -> Vector | Exception | None:
        """Do what `one` does, awaited."""
        try:
            return None if self.stopped else await self.embeddings.aembed_query(query)
        except Exception as error:
            self.stopped = not self.go_on
            return error


@dataclass(slots=True)
class EmbeddingLegs(Legs):
    """The core's own index, and the model that embeds for it."""

    index: HybridIndex
    embeddings: Embeddings

    @override
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        return caus.search(self.index, query, self.embeddings.embed_query(query), **options)

    @override
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        vector = await self.embeddings.aembed_query(query)
        return await run_in_executor(None, caus.search, self.index, query, vector, **options)

    def embed_many(
        self, queries: Sequence[str], limit: int | None, *, go_on: bool
    ) -> list[Vector | Exception | None]:
        """Embed queries one by one, in several threads; what failed for one stands in its place.

        Each thread takes its share at once: a task for each query would pass the interpreter
        from thread to thread, which takes longer than all the rest of a search.

        Parameters
        ----------
        queries
            The queries.
        limit
            Most threads, >= 1; None: as many as an executor of Python's has by itself.
        go_on
            Whether to go on once one has failed. Else None stands for those not tried.
        """
        threads = min(len(queries), limit or min(32, (os.cpu_count() or 1) + 4))
        embed = Embedding(embeddings=self.embeddings, go_on=go_on)
        vectors: list[Vector | Exception | None] = [None] * len(queries)
        with ContextThreadPoolExecutor(max_workers=threads) as executor:
            try:
                shares = executor.map(
                    lambda share: [embed.one(query) for query in share],
                    [queries[first::threads] for first in range(threads)],
                )
                for first, share in enumerate(shares):
                    vectors[first::threads] = share
            except BaseException:  # Ctrl-C, which the executor would wait for all of them to raise
                embed.stopped = True
                raise
        return vectors

    def search_many(
        self,
        caus: CAUS,
        queries: Sequence[str],
        vectors: Sequence[Vector | Exception | None],
        options: CallOptions,
    ) -> list[Arrangement | Exception | None]:
        """Search for many embedded queries at once; what failed for one stands in its place."""

        def search(item: tuple[str, Vector]) -> Arrangement:
            query, vector = item
            return caus.search(self.index, query, vector, **options)

        pairs = zip(queries, vectors, strict=True)
        embedded = [(q, v) for q, v in pairs if v is not None and not isinstance(v, Exception)]
        found: Sequence[Arrangement | Exception]
        try:
            texts, matrix = [query for query, _ in embedded], [vector for _, vector in embedded]
            found = caus.search_batch(self.index, texts, matrix, **options)
        except Exception:  # one bad query must not fail the others
            found = [attempt(search)(item) for item in embedded]
        answers = iter(found)
        return [v if v is None or isinstance(v, Exception) else next(answers) for v in vectors]

    @override
    def add(self, documents: Sequence[Document]) -> list[str]:
        if not documents:
            return []
        passages = [passage_of(document, id_of(document)) for document in documents]
        check_passages(passages)
        vectors = self.embeddings.embed_documents([passage.text for passage in passages])
        return self.index.add(passages, vectors)

    @override
    async def aadd(self, documents: Sequence[Document]) -> list[str]:
        if not documents:
            return []
        passages = [passage_of(document, id_of(document)) for document in documents]
        check_passages(passages)
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
