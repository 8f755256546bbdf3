"""Many queries at once: embedded in several threads, searched together, each a run of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.runnables.config import ContextThreadPoolExecutor, get_config_list
from langchain_core.runnables.utils import gather_with_concurrency

from langchain_posrag.legs import CallOptions, EmbeddingLegs, Vector
from shared_core import CAUS, Arrangement
from shared_core.types import Query

Result = Arrangement | Exception


class Found(NamedTuple):
    """What a batch found for one query of a retriever, or what was raised for it.

    The run of the query searches this in place of `Legs`, and so reports it.
    """

    retriever: BaseRetriever
    query: str
    result: Result

    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Return or raise the result."""
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        """Async version of `search`."""
        return self.search(caus, query, options)


_found: ContextVar[Found | None] = ContextVar("found", default=None)


def take_found(retriever: BaseRetriever, query: str) -> Found | None:
    """Return what a batch has found for the current run, once; None outside a batch.

    A callback of the run may itself ask another retriever or query, or the same one again once
    the run has its result: it gets None, too.
    """
    found = _found.get()
    if found is None or found.retriever is not retriever or found.query != query:
        return None
    _found.set(None)
    return found


def answer_many(
    retriever: BaseRetriever,
    legs: EmbeddingLegs,
    caus: CAUS,
    queries: Sequence[str],
    config: RunnableConfig | list[RunnableConfig] | None,
    arguments: Mapping[str, Any],
    *,
    return_exceptions: bool,
) -> list[list[Document]]:
    """Embed queries, search for all at once, and invoke the retriever for each with its result.

    Parameters
    ----------
    retriever, legs, caus
        What is invoked, and takes its result from `take_found`; what it searches, and how.
    queries, config, arguments, return_exceptions
        As in LangChain's ``Runnable.batch``. Unless exceptions are returned, embedding stops at
        the first that is raised, and queries that were not embedded get no run.
    """
    configs = get_config_list(config, len(queries))
    limit = configs[0].get("max_concurrency")
    vectors = _embed(legs, queries, limit, go_on=return_exceptions)
    results = _search(legs, caus, queries, vectors, arguments)

    def answer(query: str, config: RunnableConfig, result: Result) -> list[Document] | Exception:
        try:
            with _handing_over(Found(retriever, query, result)):
                return retriever.invoke(query, config, **arguments)
        except Exception as error:
            if not return_exceptions:
                raise
            return error

    given = zip(queries, configs, results, strict=True)
    answers = [answer(query, config, found) for query, config, found in given if found is not None]
    return cast("list[list[Document]]", answers)  # LangChain's type, exceptions or not


async def aanswer_many(
    retriever: BaseRetriever,
    legs: EmbeddingLegs,
    caus: CAUS,
    queries: Sequence[str],
    config: RunnableConfig | list[RunnableConfig] | None,
    arguments: Mapping[str, Any],
    *,
    return_exceptions: bool,
) -> list[list[Document]]:
    """Async version of `answer_many`; the embeddings are awaited."""
    configs = get_config_list(config, len(queries))
    limit = configs[0].get("max_concurrency")
    vectors = await _aembed(legs, queries, limit, go_on=return_exceptions)
    results = await run_in_executor(None, _search, legs, caus, queries, vectors, arguments)

    async def answer(
        query: str, config: RunnableConfig, result: Result
    ) -> list[Document] | Exception:
        try:
            with _handing_over(Found(retriever, query, result)):
                return await retriever.ainvoke(query, config, **arguments)
        except Exception as error:
            if not return_exceptions:
                raise
            return error

    given = zip(queries, configs, results, strict=True)
    answers = [answer(query, config, found) for query, config, found in given if found is not None]
    return await gather_with_concurrency(limit, *answers)


def _embed(
    legs: EmbeddingLegs, queries: Sequence[str], limit: int | None, *, go_on: bool
) -> list[Vector | Exception | None]:
    """Embed queries one by one, in several threads; None for those that were not tried.

    Each thread takes its share at once: a task for each query would pass the interpreter from
    thread to thread, which takes longer than all the rest of a search.
    """
    threads = min(len(queries), limit or min(32, (os.cpu_count() or 1) + 4))
    vectors: list[Vector | Exception | None] = [None] * len(queries)
    stopped = False

    def embed(query: str) -> Vector | Exception | None:
        nonlocal stopped
        try:
            return None if stopped else legs.embed(query)
        except Exception as error:
            stopped = not go_on
            return error

    with ContextThreadPoolExecutor(max_workers=threads) as executor:
        try:
            shares = executor.map(
                lambda share: [embed(query) for query in share],
                [queries[first::threads] for first in range(threads)],
            )
            for first, share in enumerate(shares):
                vectors[first::threads] = share
        except BaseException:  # Ctrl-C: the executor would wait until every query is embedded
            stopped = True
            raise
    return vectors


async def _aembed(
    legs: EmbeddingLegs, queries: Sequence[str], limit: int | None, *, go_on: bool
) -> list[Vector | Exception | None]:
    stopped = False

    async def embed(query: str) -> Vector | Exception | None:
        nonlocal stopped
        try:
            return None if stopped else await legs.aembed(query)
        except Exception as error:
            stopped = not go_on
            return error

    return await gather_with_concurrency(limit, *map(embed, queries))


def _search(
    legs: EmbeddingLegs,
    caus: CAUS,
    queries: Sequence[str],
    vectors: Sequence[Vector | Exception | None],
    arguments: Mapping[str, Any],
) -> list[Result | None]:
    """Search for the embedded queries; errors and None of the others stay in their place."""
    options = CallOptions(  # an unknown argument is refused by each run
        k=arguments.get("k"),
        fetch_k=arguments.get("fetch_k"),
        alpha=arguments.get("alpha"),
        where=arguments.get("filter"),
    )

    def search(query: str, vector: Vector) -> Result:
        try:
            return caus.search(legs.index, [Query(query, vector)], **options)[0]
        except Exception as error:
            return error

    pairs = zip(queries, vectors, strict=True)
    embedded = [(q, v) for q, v in pairs if v is not None and not isinstance(v, Exception)]
    found: Sequence[Result]
    try:
        found = caus.search(legs.index, [Query(*each) for each in embedded], **options)
    except Exception:  # one bad query must not fail the others
        found = [search(query, vector) for query, vector in embedded]
    results = iter(found)
    return [v if v is None or isinstance(v, Exception) else next(results) for v in vectors]


@contextmanager
def _handing_over(found: Found) -> Iterator[None]:
    token = _found.set(found)
    try:
        yield
    finally:
        _found.reset(token)
