"""A thread that is stopped midway, and a process that is forked meanwhile."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

needs_fork = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


class Stop:
    """Something to call: the thread of `during` waits there, every other thread goes on."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._reached, self._over = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> None:
        if threading.current_thread() is self._thread:
            self._reached.set()
            self._over.wait(60)

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a stop before it."""

        def stopped(*args: Any) -> Any:
            self()
            return function(*args)

        return stopped

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a stop after it."""

        def stopped(*args: Any) -> Any:
            result = function(*args)
            self()
            return result

        return stopped

    @contextmanager
    def during(self, work: Callable[[], object]) -> Iterator[None]:
        """Have another thread do `work` as far as here, and the rest afterwards."""

        def begin() -> None:
            self._thread = threading.current_thread()
            work()

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(begin)
            try:
                assert self._reached.wait(60), "the work ended, or waits, before it came here"
                yield
            finally:
                self._over.set()
            done.result()


def in_a_fork(work: Callable[[], object]) -> str:
    """Do `work` in a forked process, and return how that ended: done, failed, or hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return {0: "done", signal.SIGALRM: "hung"}.get(status, "failed")
