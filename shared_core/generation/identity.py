"""What tells one model's answers from another's of the same name."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from shared_core.generation.base import Generator

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_PLAIN = (str, bytes, int, float, complex, type(None))
_LOGS = (list, set, bytearray)
"""What a function adds to while it runs, if anything; a run that goes on must not differ by it."""


def model_identity(model: Generator) -> str:
    """Return the `identity` of a model, or else its name and a hash of its class's source."""
    own = getattr(model, "identity", None)
    return identity_of(model.name, source_of(type(model))) if own is None else str(own)


def identity_of(name: str, *description: str) -> str:
    """Return a name and a hash of what describes the model, without addresses in memory."""
    text = "\0".join(_ADDRESS.sub("", part) for part in description)
    return f"{name} {hashlib.sha256(text.encode(errors='backslashreplace')).hexdigest()[:16]}"


def source_of(thing: object) -> str:
    """Return what a function or an object does, as far as that can be read.

    Of a function: the source of the whole module that defines it, its own, its defaults, and the
    values that it takes from around it, by their repr; functions of the same module among them
    are followed. Of an object: the source of the module of its class, and its repr. In a notebook,
    where a module has no source, that of each function counts.

    Not read, so that a change there is not noticed: functions imported from other modules, what
    lists and sets hold, attributes that an object's repr does not show, files, and whatever
    answers at the other end of a connection.
    """
    return "\0".join(_parts(thing, set()))


def _parts(thing: object, seen: set[int]) -> Iterator[str]:
    if isinstance(thing, _PLAIN):
        yield repr(thing)
    elif id(thing) not in seen and not isinstance(thing, _LOGS):
        seen.add(id(thing))
        if isinstance(thing, (tuple, frozenset)):
            parts = [*_all_parts(thing, seen)]
            yield from sorted(parts) if isinstance(thing, frozenset) else parts
        elif isinstance(thing, dict):
            yield from _all_parts((part for item in thing.items() for part in item), seen)
        elif isinstance(thing, functools.partial):
            yield from _all_parts((thing.func, thing.args, thing.keywords), seen)
        elif isinstance(thing, MethodType):
            yield from _all_parts((thing.__self__, thing.__func__), seen)
        elif isinstance(thing, FunctionType):
            yield from _code(thing, seen)
            yield from _all_parts(_surroundings(thing), seen)
        elif isinstance(thing, (type, BuiltinFunctionType)):
            yield from _code(thing, seen)
        else:
            yield repr(thing)
            yield from _all_parts((type(thing), getattr(thing, "__wrapped__", None)), seen)


def _all_parts(things: Iterable[object], seen: set[int]) -> Iterator[str]:
    for thing in things:
        yield from _parts(thing, seen)


def _code(thing: FunctionType | type | BuiltinFunctionType, seen: set[int]) -> Iterator[str]:
    """Yield the name, the source, and that of the module, which each module yields once."""
    yield f"{thing.__module__} {thing.__qualname__}"
    module = sys.modules.get(thing.__module__)
    for source in (thing, *([] if module is None or id(module) in seen else [module])):
        try:
            yield inspect.getsource(source)
        except (OSError, TypeError):
            if isinstance(source, FunctionType):  # typed at a prompt, or made by exec
                yield from _byte_code(source.__code__)
    seen.add(id(module))


def _byte_code(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _byte_code(constant)
        else:
            yield from _parts(constant, set())


def _surroundings(function: FunctionType) -> Iterator[object]:
    """Yield defaults, what was enclosed, and the module's own names that the function uses."""
    yield from (function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue  # of a name that is not bound yet
    for name in sorted(_names(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        code = isinstance(value, (type, FunctionType, BuiltinFunctionType))
        imported = code and value.__module__ != function.__module__
        if not imported and not isinstance(value, ModuleType):
            yield value


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names}.union(*map(_names, inner))
