"""The only module that touches the attention functions of transformers.

Every modeling file looks its attention function up by the name of the implementation, in
``ALL_ATTENTION_FUNCTIONS``, or takes its own ``eager_attention_forward``. While anybody listens,
the function found there is wrapped: the wrapper shows the call to the listener of its own thread
and then makes it, unchanged. No new name is registered, because the name also selects the mask.
Afterwards the original object is put back.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]
Listener: TypeAlias = Callable[[Mapping[str, Any]], None]
Place: TypeAlias = tuple[MutableMapping[str, Any], str]

_EAGER = "eager_attention_forward"
_INTERFACE = "ALL_ATTENTION_FUNCTIONS"

_FIRST_ARGUMENTS = ("module", "query", "key", "value", "attention_mask")

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@dataclass
class _Wrapped:
    original: Function
    users: int = 0


_wrapped: dict[tuple[int, str], _Wrapped] = {}
_lock = threading.Lock()


@contextmanager
def listening(model: Any, listener: Listener) -> Iterator[None]:
    """Show `listener` every attention call of this thread before it is made, arguments by name.

    Calls of other models are shown too if they share a function with `model`.
    """
    with ExitStack() as stack:
        for place in places_of(model):
            stack.enter_context(_wrapping(*place))
        token = _listener.set(listener)
        try:
            yield
        finally:
            _listener.reset(token)


def layers_of(model: Any) -> dict[Any, int]:
    """Return the modules of a model that have a layer index, with that index."""
    return {
        module: module.layer_idx
        for module in model.modules()
        if isinstance(getattr(module, "layer_idx", None), int)
    }


def places_of(model: Any) -> list[Place]:
    """Return where a model looks up its attention functions: namespace or interface, and name.

    Empty if its modeling files use neither.
    """
    found: dict[tuple[int, str], Place] = {}
    for module in layers_of(model):
        name = getattr(getattr(module, "config", None), "_attn_implementation", None)
        if not isinstance(name, str):
            continue
        for kind in type(module).__mro__:
            space = vars(sys.modules[kind.__module__])
            if name in space.get(_INTERFACE, ()):
                place = (space[_INTERFACE], name)
            elif name == "eager" and _EAGER in space:
                place = (space, _EAGER)
            else:
                continue
            found[id(place[0]), place[1]] = place
    return list(found.values())


@contextmanager
def _wrapping(space: MutableMapping[str, Any], name: str) -> Iterator[None]:
    """Wrap the function inside this context, with one wrapper for all concurrent listeners."""
    where = id(space), name
    with _lock:
        if where not in _wrapped:
            _wrapped[where] = _Wrapped(space[name])
            space[name] = _showing(space[name])
        _wrapped[where].users += 1
    try:
        yield
    finally:
        with _lock:
            _wrapped[where].users -= 1
            if not _wrapped[where].users:
                _put_back(space, name, _wrapped.pop(where).original)


def _put_back(space: MutableMapping[str, Any], name: str, original: Function) -> None:
    space[name] = original
    if not isinstance(space, dict):
        # an entry of one interface hides the shared one, even one that is set later
        del space[name]
        if space.get(name) is not original:
            space[name] = original


def _showing(original: Function) -> Function:
    """Return a function that shows its arguments to the listener, and calls the original."""
    further = list(inspect.signature(original).parameters)[len(_FIRST_ARGUMENTS) :]
    names = [*_FIRST_ARGUMENTS, *further]

    @functools.wraps(original)
    def show(*args: Any, **options: Any) -> Any:
        if (listener := _listener.get()) is not None:
            listener({**dict(zip(names, args, strict=False)), **options})
        return original(*args, **options)

    return show
