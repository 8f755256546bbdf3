"""What distinguishes the answers of models of the same name."""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import linecache
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared_core.generation.models import Generator

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_HOLDERS: dict[type, str] = {
    staticmethod: "__func__",
    classmethod: "__func__",
    property: "fget",
    functools.cached_property: "func",
}
"""What a class has around its functions, and where these are kept."""
_PACE = ("batch_size", "concurrency")
"""Attributes of a model that change no answer."""


def model_fingerprint(model: Generator) -> str:
    """Return the `fingerprint` of a model, else its name and a hash of what `source_of` reads."""
    try:
        own = getattr(model, "fingerprint")  # noqa: B009 - read where it exists
    except AttributeError:
        if inspect.getattr_static(model, "fingerprint", None) is not None:
            raise  # from within the property: another model's answers must not be used
        own = None
    return fingerprint_of(model.name, source_of(model)) if own is None else str(own)


def fingerprint_of(name: str, *description: str) -> str:
    """Return a name and a hash of what describes the model."""
    text = "\0".join(description).encode(errors="backslashreplace")
    return f"{name} {hashlib.sha256(text).hexdigest()[:16]}"


def without_addresses(text: str) -> str:
    """Return the repr of a framework's object without the addresses in memory that are in it."""
    return re.sub(r"\b0x[0-9a-fA-F]+", "", text)


def source_of(thing: object) -> str:
    """Return what a function or a model object does, as far as that can be read.

    Of a function or class counts the source of the whole module that defines it; where there is no
    file, as in a notebook, its own source, and that of the functions, classes and plain values
    there that it names. Plain values (text, numbers, truth values, None and tuples of them) count
    among a function's defaults, what it encloses and what a `functools.partial` was given;
    functions and classes among these are read in the same way. Of an object that is a model, or
    whose method is one, count its class and its plain public attributes. What the code itself
    reassigns, such as counters, does not count.

    Not noticed is a change of anything else: functions imported from other modules, values that a
    module computes (from the environment, a file, the time), what lists, dicts, sets and other
    objects hold, and whatever answers at the other end of a connection.

    Warns
    -----
    UserWarning
        If the source cannot be read, as of code that was typed at a prompt of an older Python.
    """
    parts: list[str] = []
    seen: dict[int, object] = {}  # what is kept here keeps its id
    todo = [*_of_object(thing), thing]
    while todo:
        each = todo.pop()
        if type(each) in _PLAIN:
            parts.append(repr(each))
        elif id(each) not in seen:
            seen[id(each)] = each
            todo += _inside(each)
    return "\0".join(parts)


def _inside(thing: Any) -> Iterator[object]:
    """Yield what counts of a thing; never by isinstance, which asks a proxy for its class."""
    kind = type(thing)
    if kind is tuple:
        yield from thing
    elif kind is FunctionType:
        yield from _of_function(thing)
    elif issubclass(kind, type):
        yield from _of_class(thing)
    elif kind is functools.partial:
        yield from (thing.func, thing.args, *sorted(thing.keywords.items()))
    elif kind is MethodType:
        yield from (thing.__func__, *_of_object(thing.__self__))
    elif kind in _HOLDERS:
        yield getattr(thing, _HOLDERS[kind])
    else:  # such as functools.cache makes of a function
        yield inspect.getattr_static(thing, "__wrapped__", None)


def _of_function(function: FunctionType) -> Iterator[object]:
    code, names = function.__code__, function.__globals__
    yield from (function.__qualname__, code.co_firstlineno, function.__defaults__)
    yield from (*sorted((function.__kwdefaults__ or {}).items()), vars(function).get("__wrapped__"))
    used = dict(zip(code.co_freevars, map(_content, function.__closure__ or ()), strict=True))
    if text := _file_of(names, code.co_filename):
        yield text
    else:
        yield _own_source(function)
        module, called = names.get("__name__"), {*_names(code)} & names.keys()
        used |= {name: _of_module(module, names[name]) for name in called}
    yield from ((name, used[name]) for name in sorted(used.keys() - _assigned(code)))


def _of_class(kind: type) -> Iterator[object]:
    names = vars(sys.modules.get(kind.__module__, object))
    yield kind.__qualname__
    if text := _file_of(names, names.get("__file__")):
        yield text
    else:
        yield from _plain(vars(kind), kind)
        yield from (each for each in vars(kind).values() if type(each) in (FunctionType, *_HOLDERS))
    yield from (base for base in kind.__bases__ if base.__module__ == kind.__module__)


def _of_object(thing: object) -> Iterator[object]:
    """Yield the class of an object and its plain attributes; nothing of code."""
    kind = type(thing)
    if kind not in (FunctionType, MethodType, functools.partial) and not issubclass(kind, type):
        yield kind
        yield from _plain(getattr(thing, "__dict__", {}), kind)


def _plain(attributes: Mapping[str, object], kind: type) -> Iterator[object]:
    """Yield the plain public attributes that no method of the class reassigns."""
    methods = {name: each for base in kind.__mro__ for name, each in vars(base).items()}
    running = (
        each.__code__
        for name, each in methods.items()
        if type(each) is FunctionType and name not in ("__new__", "__init__", "__post_init__")
    )
    left_out = {*_PACE}.union(*map(_assigned, running))
    for name in sorted(attributes.keys() - left_out):
        if type(attributes[name]) in (*_PLAIN, tuple) and not name.startswith("_"):
            yield name, attributes[name]


def _of_module(module: object, value: object) -> object:
    """Return a global if it is a plain value, or a function or class of the module; or its class.

    None for what is of another module.
    """
    kind = type(value)
    if kind is FunctionType or issubclass(kind, type):
        return value if getattr(value, "__module__", None) == module else None
    if kind in (*_PLAIN, tuple, functools.partial, MethodType):
        return value
    return kind if kind.__module__ == module else None


def _file_of(names: Mapping[str, Any], path: str | None) -> str:
    """Return the source of a module, or "" if it has none."""
    if path is None or path != names.get("__file__"):
        return ""
    linecache.checkcache(path)
    return "".join(linecache.getlines(path, dict(names)))


def _own_source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:
        warnings.warn(
            f"the source of {function.__qualname__} cannot be read: after a change in it, answers "
            "that were kept before are taken for its own; put it into a file, or ask afresh",
            stacklevel=2,
        )
        return ""


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not bound yet


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for value in code.co_consts:
        if type(value) is CodeType:
            yield from _names(value)


def _assigned(code: CodeType) -> set[str]:
    """Return the names outside of itself that a function assigns to: a counter, say."""
    stores = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR")
    return {step.argval for step in dis.get_instructions(code) if step.opname in stores}
