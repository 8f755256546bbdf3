"""What distinguishes the answers of models of the same name."""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import re
import sys
import warnings
from collections.abc import Iterator
from types import CellType, FunctionType, MethodType
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

    Of a function or class counts the text of the file that defines it, in a notebook that of its
    cell. Plain values (text, numbers, truth values, None and tuples of them) count among a
    function's defaults, what it encloses and what a `functools.partial` was given; functions and
    classes among these are read in the same way. Of an object that is a model, or whose method is
    one, count its class and its plain public attributes. Numbers that the text counts up, as by
    ``self.calls += 1``, do not count.

    Not noticed is a change of anything else: functions of other modules and other cells, values
    that a module computes (from the environment, a file, the time), what lists, dicts, sets and
    other objects hold, and whatever answers at the other end of a connection.

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
    elif kind is functools.partial:
        yield from (thing.func, thing.args, *sorted(thing.keywords.items()))
    elif kind is MethodType:
        yield from (thing.__func__, *_of_object(thing.__self__))
    elif issubclass(kind, type):
        yield from (thing.__qualname__, text := _text_of(thing), _plain(thing, text))
        yield from (base for base in thing.__bases__ if base.__module__ == thing.__module__)
    elif kind is FunctionType:
        text = _text_of(thing)
        if not text and not thing.__name__.startswith("__"):  # as a dataclass writes them
            warnings.warn(
                f"the source of {thing.__qualname__} cannot be read: after a change in it, answers "
                "that were kept before are taken for its own; put it into a file, or ask afresh",
                stacklevel=2,
            )
        yield from (thing.__code__.co_firstlineno, thing.__defaults__, text)
        yield from sorted((thing.__kwdefaults__ or {}).items())
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            if cell != _UNBOUND and not _is_counter(name, cell.cell_contents, text):
                yield name, cell.cell_contents
    else:  # such as functools.cache makes of a function
        yield inspect.getattr_static(thing, "__wrapped__", None)


def _of_object(thing: object) -> Iterator[object]:
    """Yield the class of an object and its plain attributes; nothing of code."""
    kind = type(thing)
    if kind not in (FunctionType, MethodType, functools.partial) and not issubclass(kind, type):
        yield from (kind, _plain(thing, _text_of(kind)))


def _plain(thing: object, text: str) -> tuple[tuple[str, object], ...]:
    """Return the plain public attributes of what `text` defines."""
    return tuple(
        (name, value)
        for name, value in sorted(getattr(thing, "__dict__", {}).items())
        if type(value) in (*_PLAIN, tuple)
        and not (name.startswith("_") or name in _PACE or _is_counter(name, value, text))
    )


def _is_counter(name: str, value: object, text: str) -> bool:
    return type(value) in (int, float) and bool(re.search(rf"\b{name} \+= ", text))


def _text_of(thing: Any) -> str:
    """Return the text of the file that defines a function or class, or of its cells."""
    if type(thing) is FunctionType:
        path, names = thing.__code__.co_filename, thing.__globals__
    else:
        names = vars(sys.modules.get(thing.__module__, object))
        path = names.get("__file__") or ""
        if not path:
            methods = map(inspect.unwrap, filter(callable, vars(thing).values()))
            return "".join(_text_of(each) for each in methods if type(each) is FunctionType)
    linecache.checkcache(path)
    return "".join(linecache.getlines(path, dict(names)))
