"""Several calls at once, in threads that an interrupt does not have to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Posts: TypeAlias = SimpleQueue[Callable[[], object]]
"""What threads have called in the calling one."""

GRACE = 3.0
"""How many seconds calls that are under way may go on after an interrupt, to bring an answer."""

POLL = 0.2
"""How long in seconds a wait may last without a look at what else has happened.

An interrupt that arrives just before a wait does not end it; on Windows no interrupt does.
"""


def run_in_threads(
    items: Sequence[T], work: Callable[[T], None], posts: Posts, *, threads: int, stop: Event
) -> None:
    """Do `work` on every item, on `threads` of them at once, in the order of the items.

    Parameters
    ----------
    items
        What there is to work on.
    work
        Takes an item.
    posts
        Where work puts what it reports.
    threads
        How many at once, >= 1.
    stop
        Set as soon as work fails or the caller is interrupted. Then no further item is begun;
        work that is under way should not wait for anything.

    Raises
    ------
    BaseException
        What the first work that failed raised, when the work under way then has ended. An
        interrupt is raised after `GRACE` seconds at the latest: a call that hangs is left behind.
    """
    todo = iter(items)
    outcomes: list[BaseException | None] = []

    def worker() -> None:
        failure: BaseException | None = None
        try:
            while not stop.is_set():
                item = next(todo, None)
                if item is None:
                    break
                work(item)
        except BaseException as error:
            stop.set()
            failure = error
        posts.put(partial(outcomes.append, failure))

    # Daemons, because the interpreter would not end before other threads have.
    # Each has a context like the caller's: tracers and requests of the user's are found by it.
    pool = [
        Thread(target=copy_context().run, args=(worker,), daemon=True)
        for _ in range(min(threads, len(items)))
    ]
    try:
        for thread in pool:
            thread.start()
        while len(outcomes) < len(pool):
            try:
                report = posts.get(timeout=POLL)
            except Empty:
                continue
            report()
    except BaseException:
        stop.set()
        _wait_a_little(pool)
        raise
    for failure in outcomes:
        if failure is not None:
            raise failure


def pause(seconds: float, stop: Event) -> bool:
    """Sleep, but no longer than until `stop` is set; return whether it is not."""
    end = time.monotonic() + seconds
    while not stop.wait(min(POLL, max(0.0, end - time.monotonic()))):
        if time.monotonic() >= end:
            return True
    return False


def _wait_a_little(pool: Sequence[Thread]) -> None:
    end = time.monotonic() + GRACE
    for thread in pool:
        if thread.ident is not None:
            thread.join(max(0.0, end - time.monotonic()))
