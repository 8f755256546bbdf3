"""What distinguishes the answers of models of the same name."""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import linecache
import re
import sys
from collections.abc import Iterator, Mapping
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from shared_core.generation.base import Generator

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_HOLDERS: dict[type, tuple[str, ...]] = {
    functools.partial: ("func", "args", "keywords"),
    MethodType: ("__func__", "__self__"),
    BuiltinFunctionType: ("__name__", "__self__"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset"),
    functools.cached_property: ("func",),
    type(functools.cache(len)): ("__wrapped__",),
}
"""Python's own objects around functions, and where they keep them."""
_CODE = (FunctionType, ModuleType, *_HOLDERS)
_MAKING = ("__new__", "__init__", "__post_init__")
_PACE = ("batch_size", "concurrency")
"""Attributes of a model that change no answer."""


def model_identity(model: Generator) -> str:
    """Return the `identity` of a model, or else its name and a hash of what `source_of` reads."""
    try:
        own = getattr(model, "identity")  # noqa: B009 - read where it exists
    except AttributeError:
        if inspect.getattr_static(model, "identity", None) is not None:
            raise  # from within the property: another model's answers must not be used
        own = None
    return identity_of(model.name, source_of(model)) if own is None else str(own)


def identity_of(name: str, *description: str) -> str:
    """Return a name and a hash of what describes the model."""
    text = "\0".join(description).encode(errors="backslashreplace")
    return f"{name} {hashlib.sha256(text).hexdigest()[:16]}"


def without_addresses(text: str) -> str:
    """Return the repr of a framework's object without the addresses in memory that are in it."""
    return re.sub(r"\b0x[0-9a-fA-F]+", "", text)


def source_of(thing: object) -> str:
    """Return what a function or a model object does, as far as that can be read.

    Of a function count the source of the whole module that defines it, and plain values (text,
    numbers, truth values, None and tuples of them) among its defaults, what it encloses and what a
    `functools.partial` was given. Functions and classes among these are read in the same way, and
    so is what a decorator wraps. Of a module without source, as in a notebook, count instead the
    byte code of the function and of the module's functions and classes that it uses, and plain
    values of the globals that it uses. Of an object that is a model, or whose method is one, count
    its class and its plain public attributes. Names that the code itself reassigns, such as
    counters, do not count.

    Not noticed is a change of anything else: functions imported from other modules, values that a
    module with source computes (from the environment, a file, the time), what lists, dicts, sets
    and other objects hold, and whatever answers at the other end of a connection.
    """
    parts: list[str] = []
    sources: dict[str, str] = {}
    seen: dict[int, object] = {}  # what is kept here keeps its id
    todo = [*_model(thing), thing]
    while todo:
        each = todo.pop()
        if type(each) in _PLAIN:
            # of a long integer Python refuses the repr
            parts.append(hex(each) if type(each) is int else repr(each))
        elif type(each) is tuple:
            todo += [*reversed(each), len(each)]
        elif id(each) not in seen:
            seen[id(each)] = each
            todo += reversed([*_inside(each, sources)])
    return "\0".join([*parts, *sources.values()])


def _inside(thing: Any, sources: dict[str, str]) -> Iterator[object]:
    """Yield what counts of a thing; never by isinstance, which asks a proxy for its class."""
    kind = type(thing)
    if kind is FunctionType:
        yield from _of_function(thing, sources)
    elif kind is CodeType:
        yield from (thing.co_code, thing.co_exceptiontable, thing.co_names)
        for value in thing.co_consts:
            yield tuple(sorted(map(repr, value))) if type(value) is frozenset else value
    elif issubclass(kind, type):
        yield from _of_class(thing, sources)
    elif kind in _HOLDERS:
        for key in _HOLDERS[kind]:
            value = getattr(thing, key)
            yield tuple(sorted(value.items())) if key == "keywords" else value
            yield from _model(value) if key == "__self__" else ()
    else:
        yield inspect.getattr_static(thing, "__wrapped__", None)


def _of_function(function: FunctionType, sources: dict[str, str]) -> Iterator[object]:
    code, names = function.__code__, function.__globals__
    module = names.get("__name__")
    yield from (module, function.__qualname__, function.__defaults__)
    yield from (*sorted((function.__kwdefaults__ or {}).items()), vars(function).get("__wrapped__"))
    used = dict(zip(code.co_freevars, map(_content, function.__closure__ or ()), strict=True))
    if names.get("__file__") == code.co_filename and _read(names, sources):
        yield code.co_firstlineno
    else:
        yield code
        globals_ = sorted({name for each in _codes(code) for name in each.co_names} & names.keys())
        used |= {name: names[name] for name in globals_ if _is_of(module, names[name])}
    assigned = _assigned(code, "STORE_GLOBAL", "STORE_DEREF") if used else set()
    for name in sorted(used.keys() - assigned):
        yield name, used[name]
        if type(used[name]).__module__ == module:
            yield type(used[name])


def _of_class(kind: type, sources: dict[str, str]) -> Iterator[object]:
    yield from (kind.__module__, kind.__qualname__)
    module = sys.modules.get(kind.__module__)
    if module is None or not _read(vars(module), sources):
        yield from _plain(vars(kind), kind)
    yield from ((k, v) for k, v in vars(kind).items() if type(v) in (*_CODE, type))
    yield from (base for base in kind.__bases__ if base.__module__ == kind.__module__)


def _model(thing: object) -> Iterator[object]:
    """Yield the class of an object and its plain attributes; nothing of code."""
    kind = type(thing)
    if kind not in _CODE and not issubclass(kind, type):
        yield kind
        own = inspect.getattr_static(thing, "__dict__", None)
        if type(own) is GetSetDescriptorType:
            yield from _plain(own.__get__(thing), kind)


def _plain(attributes: Mapping[str, object], kind: type) -> Iterator[object]:
    """Yield the plain public attributes that no method of the class reassigns."""
    names = {key for key, value in attributes.items() if type(value) in (*_PLAIN, tuple)}
    for base in kind.__mro__:
        for name, method in vars(base).items():
            if type(method) is FunctionType and name not in _MAKING:
                names -= _assigned(method.__code__, "STORE_ATTR")
    names = {name for name in names if not name.startswith("_")}.difference(_PACE)
    yield from ((name, attributes[name]) for name in sorted(names))


def _is_of(module: object, value: object) -> bool:
    """Whether a global is a plain value, or code (an object of a class) of the same module."""
    kind = type(value)
    if kind is FunctionType:
        return bool(value.__module__ == module)
    held = kind in (*_PLAIN, tuple, functools.partial, MethodType)
    return held or inspect.getattr_static(value, "__module__", None) == module


def _read(names: Mapping[str, Any], sources: dict[str, str]) -> bool:
    """Return whether a module has a source, which is among `sources` from now on."""
    path = names.get("__file__")
    if type(path) is str and path not in sources:
        linecache.checkcache(path)
        sources[path] = "".join(linecache.getlines(path, dict(names)))
    return type(path) is str and bool(sources[path])


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not bound yet


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for value in code.co_consts:
        if type(value) is CodeType:
            yield from _codes(value)


def _assigned(code: CodeType, *operations: str) -> set[str]:
    numbers = {dis.opmap[operation] for operation in operations}
    steps = (
        step
        for each in _codes(code)
        if not numbers.isdisjoint(each.co_code[::2])  # or there is no need to look closer
        for step in dis.get_instructions(each)
    )
    return {step.argval for step in steps if step.opname in operations}
