"""Signature and text of an API entry, from ``inspect`` or from the docstring itself."""

from __future__ import annotations

import inspect
import re
from typing import Any

# Addresses and enum values differ between processes or builds, and are cut from defaults.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_ENUM = re.compile(r"<([\w.]+): -?\d+>")
_NAMED = re.compile(r"<(?:class '|function |built-in function )(?:\w+\.)*(<lambda>|\w+)'?>")
_TIGHT_COMMA = re.compile(r",(?=\S)")
_HEAD = re.compile(r"[A-Za-z_][\w.]*(?=\()")
_RETURNS = re.compile(r"\s*(->[^\n]*?)?:?[ \t]*(?=\n|$)")
_BOILERPLATE = frozenset({"An enumeration.", "Members:"})
"""Docstrings that enum and pybind11 write themselves; they document nothing."""

_POINTER = re.compile(
    r"(see|alias (for|of)|(out-of-|out-|in-?)place version of) :\w+:`[^`]*`[.:]?",
    re.IGNORECASE,
)


def own_docstring(entry: Any) -> str:
    """Return the entry's own docstring, dedented; empty where it has none or an inherited one."""
    if isinstance(entry, type):
        text = entry.__dict__.get("__doc__")
    else:
        text = getattr(entry, "__doc__", None)
    if not isinstance(text, str) or text.strip() in _BOILERPLATE or text == type(entry).__doc__:
        return ""
    return inspect.cleandoc(text).strip()


def is_pointer(text: str) -> bool:
    """Whether `text` only refers to another entry for the documentation."""
    return _POINTER.fullmatch(" ".join(text.split())) is not None


def split_docstring(name: str, entry: Any) -> tuple[str, str]:
    """Return the signature of `entry`, such as ``(input, dim=-1) -> Tensor``, and its text.

    Builtins carry their signature on the docstring's first lines, and some Python functions carry
    one there that says more than ``(*args, **kwargs)``; it takes precedence and is cut from the
    text. Otherwise the signature is inspected. It is empty where neither gives one.
    """
    text = own_docstring(entry)
    written, rest = _leading_signature(name, text)
    if written:
        return written, rest
    return _inspected_signature(entry), text


def whole_words(text: str, most: int) -> str:
    """Return the beginning of `text` in whole words, at most `most` characters."""
    return text if len(text) <= most else text[:most].rsplit(None, 1)[0]


def _leading_signature(name: str, text: str) -> tuple[str, str]:
    head = _HEAD.match(text)
    if head is None or head.group().rpartition(".")[2] not in (name, "__init__"):
        return "", text
    end = _closing(text, head.end())
    tail = _RETURNS.match(text, end) if end else None
    if tail is None:
        return "", text
    written = f"{_TIGHT_COMMA.sub(', ', text[head.end() : end])} {tail.group(1) or ''}"
    return " ".join(written.split()), text[tail.end() :].strip()


def _closing(text: str, start: int) -> int:
    """Return the position after the parenthesis that closes the one at `start`, or 0."""
    depth = 0
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    return 0


def _inspected_signature(entry: Any) -> str:
    if not callable(entry):
        return ""
    try:
        signature = inspect.signature(entry)
    except (ValueError, TypeError):
        return ""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self" and not parameter.name.startswith("_")
    ]
    written = _ADDRESS.sub("", str(inspect.Signature(parameters)))
    return _NAMED.sub(r"\1", _ENUM.sub(r"\1", written))
