"""Locks and changes in a forked process, where the threads that would end them do not exist."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

L = TypeVar("L")

_locks: WeakSet[Any] = WeakSet()
_under_way: set[Callable[[], None]] = set()


def forkable(lock: L) -> L:
    """Return a lock of `threading`, which is open at first in each process forked from now on."""
    _locks.add(lock)
    return lock


@contextmanager
def undone_by(undo: Callable[[], None]) -> Iterator[None]:
    """Undo a change that is interrupted, and in a process that is forked amid it."""
    try:
        _under_way.add(undo)
        yield
    except BaseException:
        undo()
        raise
    finally:
        _under_way.discard(undo)


def _begin_anew() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as Python's own modules do with theirs
    for undo in _under_way:
        undo()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
