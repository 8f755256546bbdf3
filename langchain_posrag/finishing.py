"""What has to be finished even if the task that asked for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_unfinished: set[asyncio.Task[Any]] = set()


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Await work that goes on even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)  # the event loop holds it only weakly
    task.add_done_callback(_unfinished.discard)
    return await asyncio.shield(task)
