"""Keeps locks, thread pools and half-made changes usable in a forked process.

The parent's threads do not exist there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

L = TypeVar("L")

_locks: WeakSet[Any] = WeakSet()
_under_way: set[Callable[[], None]] = set()


def in_child(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function to be called in each process forked from now on; a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def forkable(lock: L) -> L:
    """Return a `threading` lock, and have it start unlocked in each process forked from now on."""
    _locks.add(lock)
    return lock


def delaying_forks() -> AbstractContextManager[object]:
    """Return a lock: while another thread holds it, a fork waits.

    For what cannot be mended in a forked process, such as a lock inside a library. A thread that
    holds it can fork, as a signal handler may do.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


@contextmanager
def undone_by(undo: Callable[[], None]) -> Iterator[None]:
    """Undo a change if it is interrupted, and in a process that is forked during it."""
    try:
        _under_way.add(undo)
        yield
    except BaseException:
        undo()
        raise
    finally:
        _under_way.discard(undo)


@in_child
def _reset_child() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as Python's own modules do with theirs
    for undo in _under_way:
        undo()
    _under_way.clear()
