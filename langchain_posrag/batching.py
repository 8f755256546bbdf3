"""Many queries at once: embedded side by side, searched together, each a run of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.runnables.utils import gather_with_concurrency

from shared_core import Arrangement
from shared_core.types import Query

Embedded = Mapping[str, Query | Exception]
"""Query -> with its vector, or what was raised for it."""

Results = Mapping[str, Arrangement | Exception]


class _Batch(NamedTuple):
    retriever: object
    options: Mapping[str, Any]
    results: Results


_batch: ContextVar[_Batch | None] = ContextVar("batch", default=None)


@contextmanager
def handing_over(retriever: object, options: Mapping[str, Any], results: Results) -> Iterator[None]:
    """Let the runs of the queries, which begin meanwhile, take their results from the batch."""
    token = _batch.set(_Batch(retriever, options, results))
    try:
        yield
    finally:
        _batch.reset(token)


def handed_over(retriever: object, options: Mapping[str, Any], query: str) -> Arrangement | None:
    """Return or raise what a batch has for a query; None for one that is asked outside of it.

    As a callback of a run in the batch may ask another retriever, or with other options.
    """
    batch = _batch.get()
    if batch is None or batch.retriever is not retriever or batch.options != options:
        return None
    result = batch.results.get(query)
    if isinstance(result, Exception):
        raise result
    return result


def embedded(
    embed: Callable[[str], Query], queries: Sequence[str], limit: int | None, *, go_on: bool
) -> Embedded:
    """Embed queries one by one in several threads; unless told to go on, stop at the first error.

    Each thread takes its share at once: a task for each query would pass the interpreter from
    thread to thread, which takes longer than all the rest of a search.
    """
    threads = min(len(queries), limit or min(32, (os.cpu_count() or 1) + 4))
    found: dict[str, Query | Exception] = {}
    stopped = False

    def share(first: int) -> None:
        nonlocal stopped
        for query in queries[first::threads]:
            if stopped:
                return
            try:
                found[query] = embed(query)
            except Exception as error:
                found[query], stopped = error, not go_on

    with ContextThreadPoolExecutor(max_workers=threads) as executor:
        try:
            deque(executor.map(share, range(threads)), maxlen=0)
        finally:
            stopped = True  # Ctrl-C: the executor would wait until every query is embedded
    return _whole(queries, found)


async def aembedded(
    embed: Callable[[str], Awaitable[Query]],
    queries: Sequence[str],
    limit: int | None,
    *,
    go_on: bool,
) -> Embedded:
    """Async version of `embedded`."""
    found: dict[str, Query | Exception] = {}
    stopped = False

    async def one(query: str) -> None:
        nonlocal stopped
        if not stopped:
            try:
                found[query] = await embed(query)
            except Exception as error:
                found[query], stopped = error, not go_on

    await gather_with_concurrency(limit, *map(one, queries))
    return _whole(queries, found)


def _whole(queries: Sequence[str], found: Embedded) -> Embedded:
    """Return one for each query; those that were not tried fail as the one that failed."""
    failed = (each for each in found.values() if isinstance(each, Exception))
    error = next(failed, None)
    return found if error is None else {query: found.get(query, error) for query in queries}


def searched(
    search: Callable[[Sequence[Query], Mapping[str, Any]], Sequence[Arrangement]],
    options: Mapping[str, Any],
    found: Embedded,
) -> Results:
    """Search for the embedded queries at once; if that fails, each is left to its own run."""
    errors = {query: each for query, each in found.items() if isinstance(each, Exception)}
    queries = {query: each for query, each in found.items() if isinstance(each, Query)}
    try:
        return errors | dict(zip(queries, search([*queries.values()], options), strict=True))
    except Exception:  # one bad query must not fail the others
        return errors
