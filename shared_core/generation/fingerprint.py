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
_UNBOUND = CellType()
_PACE = {"batch_size", "concurrency"}
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

    Of a function or class counts the text of the file that defines it; in a notebook that of its
    cell, and the functions, classes and plain values of other cells that its code names. Plain
    values (text, numbers, truth values, None and tuples of them) count among a function's defaults,
    what it encloses and what a `functools.partial` was given; functions and classes among these are
    read in the same way. Of an object that is a model, or whose method is one, count its class and
    its plain public attributes. What the code itself reassigns, such as counters, does not count.

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
        yield from (thing.__code__.co_firstlineno, thing.__defaults__)
        yield from sorted((thing.__kwdefaults__ or {}).items())
        assigned = _assigned(thing)
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            if name not in assigned and cell != _UNBOUND:
                yield name, cell.cell_contents
        yield from _text_around(thing)
    elif issubclass(kind, type):
        yield from (thing.__qualname__, _plain(thing, thing))
        names = vars(sys.modules.get(thing.__module__, object))
        if file := names.get("__file__"):
            yield _text_of(file, names)
        else:
            yield from (each for each in vars(thing).values() if type(each) is FunctionType)
        yield from (base for base in thing.__bases__ if base.__module__ == thing.__module__)
    elif kind is functools.partial:
        yield from (thing.func, thing.args, *sorted(thing.keywords.items()))
    elif kind is MethodType:
        yield from (thing.__func__, *_of_object(thing.__self__))
    else:  # such as functools.cache makes of a function
        yield inspect.getattr_static(thing, "__wrapped__", None)


def _of_object(thing: object) -> Iterator[object]:
    """Yield the class of an object and its plain attributes; nothing of code."""
    kind = type(thing)
    if kind not in (FunctionType, MethodType, functools.partial) and not issubclass(kind, type):
        yield from (kind, _plain(thing, kind))


def _plain(thing: object, kind: type) -> tuple[tuple[str, object], ...]:
    """Return the plain public attributes that no method of the class reassigns."""
    attributes = getattr(thing, "__dict__", {})
    methods = {name: each for base in kind.__mro__ for name, each in vars(base).items()}
    making = ("__new__", "__init__", "__post_init__")
    running = [each for name, each in methods.items() if name not in making]
    left_out = _PACE.union(*(_assigned(each) for each in running if type(each) is FunctionType))
    return tuple(
        (name, attributes[name])
        for name in sorted(attributes.keys() - left_out)
        if type(attributes[name]) in (*_PLAIN, tuple) and not name.startswith("_")
    )


def _text_around(function: FunctionType) -> Iterator[object]:
    """Yield the text of the file or cell of a function; of a cell also what it names elsewhere."""
    path, names = function.__code__.co_filename, function.__globals__
    text = _text_of(path, names)
    yield text
    if not text and not function.__name__.startswith("__"):  # as a dataclass writes them
        warnings.warn(
            f"the source of {function.__qualname__} cannot be read: after a change in it, answers "
            "that were kept before are taken for its own; put it into a file, or ask afresh",
            stacklevel=2,
        )
    if path != names.get("__file__"):
        used = {*_names(function.__code__)} - _assigned(function)
        for name in sorted(used & names.keys()):
            yield name, _of_module(names["__name__"], names[name])


def _text_of(path: str, names: Mapping[str, Any]) -> str:
    linecache.checkcache(path)
    return "".join(linecache.getlines(path, dict(names)))


def _of_module(module: object, value: object) -> object:
    """Return a global if it is a plain value, or a function or class of the module; or its class.

    None for what is of another module.
    """
    kind = type(value)
    if kind in (*_PLAIN, tuple, functools.partial, MethodType):
        return value
    code = value if kind is FunctionType or issubclass(kind, type) else kind
    return code if getattr(code, "__module__", None) == module else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for value in code.co_consts:
        if type(value) is CodeType:
            yield from _names(value)


def _assigned(function: FunctionType) -> set[str]:
    """Return the names outside of itself that a function assigns to: a counter, say."""
    stores = ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR")
    return {step.argval for step in dis.get_instructions(function) if step.opname in stores}
