"""Whether a subclass overrides methods, which a shortcut or an async version must not bypass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache, wraps
from inspect import getattr_static
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def inherits(cls: type, base: type, *methods: str) -> bool:
    """Return whether a class inherits these methods of `base` unchanged."""
    # LlamaIndex's dispatcher wraps them in other objects each time they are read as attributes.
    return all(getattr_static(cls, name) is getattr_static(base, name) for name in methods)


@cache
def overrides_alone(cls: type, method: str, async_version: str) -> bool:
    """Return whether the `method` of a class overrides one that its `async_version` belongs to."""

    def depth(name: str) -> int:
        return next(at for at, each in enumerate(cls.__mro__) if name in vars(each))

    return depth(method) < depth(async_version)


def follows(
    method: str,
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Decorate the async version of a method: a subclass that overrides the method alone counts.

    Its method then runs in a thread, as in the frameworks' base classes.
    """

    def decorated(
        function: Callable[P, Coroutine[Any, Any, T]],
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(function)
        async def followed(*args: P.args, **kwargs: P.kwargs) -> T:
            owner, *others = args
            cls: type = type(owner)
            if not overrides_alone(cls, method, function.__name__):
                return await function(*args, **kwargs)
            overriding: Callable[..., T] = getattr(owner, method)
            return await asyncio.to_thread(overriding, *others, **kwargs)

        return followed

    return decorated
