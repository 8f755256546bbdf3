"""Work that other threads do beside the one that waits for it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar, cast

from shared_core.forking import in_child

A = TypeVar("A")
T = TypeVar("T")


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


THREADS = max(_cores() - 1, 1)
"""One core is for the thread that waits, which takes calls over."""

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="posrag")


@in_child
def _renew_threads() -> None:
    """Replace the threads in a forked process, where they do not exist."""
    global _threads
    _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="posrag")


class Beside(Generic[T]):
    """A call in another thread; in the one that waits for it where none has begun by then.

    So nobody waits for threads that are busy with the work of others, nor where there are none,
    as in a thread that goes on when the main one has ended.

    Parameters
    ----------
    function
        What to call. Worth it where it lets other threads run meanwhile, as a kernel does.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._results: list[T] = []
        self._future: Future[T] | None
        try:
            self._future = _threads.submit(function)
        except RuntimeError:
            self._future = None

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return bool(self._results) or (self._future is not None and self._future.done())

    def here(self) -> bool:
        """Call it in this thread, unless one has begun; return whether it did so."""
        if self._results or not (self._future is None or self._future.cancel()):
            return False
        self._results.append(self._function())
        return True

    def result(self) -> T:
        """Return what the function returns, or raise what it raises."""
        if self._results or self.here():
            return self._results[0]
        return cast("Future[T]", self._future).result()


def ahead(function: Callable[[A], T], arguments: Iterable[A]) -> Iterator[T]:
    """Yield what a function returns for each argument, in order; the next few are under way."""
    calls: deque[Beside[T]] = deque()

    def first() -> T:
        call = calls.popleft()
        while not call.done and any(other.here() for other in (call, *calls)):
            pass
        return call.result()

    for argument in arguments:
        calls.append(Beside(partial(function, argument)))
        if len(calls) > 2 * THREADS + 1:
            yield first()
    while calls:
        yield first()
