"""Calls in background threads, which the waiting thread takes over if none has begun them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from shared_core.forking import in_child

A = TypeVar("A")
T = TypeVar("T")


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


THREADS = max(_cores() - 1, 1)
"""One core is left to the waiting thread, which takes calls over."""

_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="posrag")


@in_child
def _renew_threads() -> None:
    """Replace the threads in a forked process, where they do not exist."""
    global _threads
    _threads = ThreadPoolExecutor(THREADS, thread_name_prefix="posrag")


class BackgroundCall(Generic[T]):
    """A call in another thread, or in the one that waits for it if no other has begun.

    A waiting thread is thus held up neither by busy threads nor by a lack of them, as in a thread
    that outlives the main one.

    Parameters
    ----------
    function
        What to call. It only pays off if it lets other threads run meanwhile, as a kernel does. It
        does not see the caller's context variables: run what may read them, as a user's function
        may, by ``copy_context().run``.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._functions = [function]
        self._future: Future[T]
        try:
            self._future = _threads.submit(_call, self._functions)
        except RuntimeError:  # no thread could start; others may still make the queued call
            self._functions, self._future = [function], Future()

    @property
    def done(self) -> bool:
        """Whether it has finished, with a result or an error."""
        return self._future.done()

    def cancel(self) -> bool:
        """Keep other threads from starting it; return whether none had."""
        return self._future.cancel()

    def here(self) -> bool:
        """Call it in this thread unless it has begun; return whether this did."""
        if not self.cancel():
            return False
        self._future = Future()
        try:
            self._future.set_result(_call(self._functions))
        except BaseException as error:
            self._future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        return True

    def result(self) -> T:
        """Return what the function returns, or raise what it raises."""
        self.here()
        return self._future.result()


def _call(functions: list[Callable[[], T]]) -> T:
    """Call the only function and drop it, since a pool keeps cancelled calls for a while."""
    return functions.pop()()


def map_ahead(function: Callable[[A], T], arguments: Iterable[A]) -> Iterator[T]:
    """Yield a function's result for each argument, in order; the next few calls are under way."""
    calls: deque[BackgroundCall[T]] = deque()

    def first() -> T:
        call = calls.popleft()
        while not call.done and any(other.here() for other in (call, *calls)):
            pass
        return call.result()

    try:
        for argument in arguments:
            calls.append(BackgroundCall(partial(function, argument)))
            if len(calls) > 2 * THREADS + 1:
                yield first()
        while calls:
            yield first()
    finally:
        for call in calls:
            call.cancel()
