"""The queries of a batch: embedded side by side, and searched for together."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.runnables.utils import gather_with_concurrency

from shared_core import Arrangement
from shared_core.types import Query

Embedded = Mapping[str, Query | Exception]
"""Query -> with its vector, or what was raised for it; one that was not tried is left out."""

Results = Mapping[str, Arrangement | Exception]


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
            [*executor.map(share, range(threads))]
        finally:
            stopped = True  # Ctrl-C: the executor would wait until every query is embedded
    return found


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
    return found


def searched(
    search: Callable[[Sequence[Query]], Sequence[Arrangement]],
    queries: Sequence[str],
    found: Embedded,
) -> Results:
    """Search for the embedded queries at once; if that fails, each is left to its own run.

    Those that were not tried fail as the one that failed.
    """
    errors = {query: each for query, each in found.items() if isinstance(each, Exception)}
    asked = {query: each for query, each in found.items() if isinstance(each, Query)}
    results: dict[str, Arrangement | Exception] = {}
    for error in errors.values():
        results = dict.fromkeys([query for query in queries if query not in found], error)
    try:
        return results | errors | dict(zip(asked, search([*asked.values()]), strict=True))
    except Exception:  # one bad query must not fail the others
        return results | errors


def taken(results: Results, query: str) -> Arrangement | None:
    """Return or raise what a batch has for a query; None if it has nothing."""
    result = results.get(query)
    if isinstance(result, Exception):
        raise result
    return result
