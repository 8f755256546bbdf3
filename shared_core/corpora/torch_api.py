"""The PyTorch API as a corpus: one passage for each documented entry of the installed torch.

CAUS (section IV) was measured on a PyTorch API corpus of more than 1,500 chunks. This one needs
no download, since torch carries its documentation with it. The 52 questions of developers, in
three levels, were not published either; ours are each answered by one call of the API.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypeAlias

from shared_core._extras import require
from shared_core.corpora.docstrings import is_pointer, split_docstring
from shared_core.types import Passage

DOCUMENTED = "torch_modules.json"
"""The documented modules, and the classes whose methods and properties are separate entries.

An entry reachable through several modules is named after the first, so a module that merely
re-exports comes after the one whose pages describe the entry.
"""


Level: TypeAlias = Literal["basic", "intermediate", "signature"]


class _Entry(NamedTuple):
    module: str
    name: str
    value: Any
    kind: str

    @property
    def id(self) -> str:
        return f"{self.module}.{self.name}"


def torch_api_passages() -> list[Passage]:
    """Return one passage for each documented public entry of the installed torch.

    Returns
    -------
    list of Passage
        Ordered by id, the qualified public name. The text is ``name(signature)``, a blank line and
        the docstring. The metadata holds ``name``, ``signature``, ``module`` (the class, for a
        method), ``kind`` (``class``, ``function``, ``method`` or ``property``) and ``aliases``, the
        other public names of the same object. Left out are entries without their own docstring,
        those that only point elsewhere (``See :func:`torch.abs` ``), and modules that this torch
        lacks.

    Raises
    ------
    MissingExtraError
        If torch is not installed.
    """
    require("torch", extra="models")
    found: dict[int, _Entry] = {}
    aliases: dict[int, list[str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in _entries():
            key = _identity(entry)
            if key in found:
                aliases.setdefault(key, []).append(entry.id)
            else:
                found[key] = entry
        passages = [_passage(entry, aliases.get(key, [])) for key, entry in found.items()]
    return sorted((p for p in passages if p is not None), key=lambda passage: passage.id)


def _identity(entry: _Entry) -> int:
    """Return what an entry shares with its aliases.

    Loading a model makes torch wrap some functions (``torch.manual_seed``) in one module and not in
    another. Those are still one entry; a wrapper under another name, such as a former spelling, is
    a separate one.
    """
    own_name = getattr(entry.value, "__name__", None) == entry.name
    return id(inspect.unwrap(entry.value) if own_name else entry.value)


def _passage(entry: _Entry, aliases: list[str]) -> Passage | None:
    signature, text = split_docstring(entry.name, entry.value)
    if not text or is_pointer(text):
        return None
    metadata = {
        "name": entry.name,
        "signature": signature,
        "module": entry.module,
        "kind": entry.kind,
        "aliases": sorted(aliases),
    }
    return Passage(entry.id, f"{entry.id}{signature}\n\n{text}", metadata)


def _entries() -> Iterator[_Entry]:
    documented = json.loads(files("shared_core.corpora").joinpath(DOCUMENTED).read_text("utf-8"))
    for name in documented["modules"]:
        if importlib.util.find_spec(name) is not None:
            yield from _module_entries(name, importlib.import_module(name))
    for qualified in documented["classes"]:
        module, _, name = qualified.rpartition(".")
        yield from _class_entries(qualified, getattr(importlib.import_module(module), name))


def _module_entries(name: str, module: ModuleType) -> Iterator[_Entry]:
    declared = getattr(module, "__all__", None)
    for attribute in sorted(set(declared if declared else dir(module))):
        value = getattr(module, attribute, None)
        if attribute.startswith("_") or not callable(value):
            continue
        if _is_torch(value) and (declared or _is_written_publicly(value)):
            kind = "class" if isinstance(value, type) else "function"
            yield _Entry(name, attribute, value, kind)


def _home(value: Any) -> str:
    return getattr(value, "__module__", None) or "torch"


def _is_torch(value: Any) -> bool:
    return _home(value).partition(".")[0] == "torch"


def _is_written_publicly(value: Any) -> bool:
    """Whether `value` is a module's own rather than a helper the module imported."""
    home = _home(value)
    if home == "torch._C":
        return isinstance(value, type)
    return home.startswith("torch._C.") or "._" not in home


def _class_entries(qualified: str, cls: type) -> Iterator[_Entry]:
    for attribute in sorted(dir(cls)):
        if attribute.startswith("_") or hasattr(object, attribute):
            continue
        value = inspect.getattr_static(cls, attribute)
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        yield _Entry(qualified, attribute, value, "method" if callable(value) else "property")


@dataclass(frozen=True, kw_only=True)
class TorchQuery:
    """A task in a developer's words, and the call that does it.

    Attributes
    ----------
    id
        Level and number, as ``basic-01``.
    level
        ``"basic"``; ``"intermediate"``; or ``"signature"``, where the order or names of the
        arguments are easily wrong, mostly because they have changed between versions.
    query
        The question. It names every variable of the call, and never the API.
    api
        Id of the gold passage: the API's qualified name.
    required
        The call that the answer must contain: required arguments by position, others by name in the
        order of the signature, without those that have their default. The name is cut to a suffix
        that no other entry has, so that each customary way to import it matches.
    keywords
        What the answer must contain, all of it, for the keyword match.
    changed
        What has changed, or is easily confused, at the level ``"signature"``; else None.
    """

    id: str
    level: Level
    query: str
    api: str
    required: str
    keywords: tuple[str, ...]
    changed: str | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """The required call with either kind of quotes, for the grader ``"em"``."""
        return tuple(dict.fromkeys([self.required, self.required.replace('"', "'")]))


def torch_queries() -> list[TorchQuery]:
    """Return the 52 questions: 18 basic, 17 intermediate, 17 signature-sensitive, in this order.

    They need no torch; the calls are those of torch 2.6 and later.
    """
    text = files("shared_core.corpora").joinpath("torch_queries.jsonl").read_text("utf-8")
    return [_query(json.loads(line)) for line in text.splitlines()]


def _query(fields: dict[str, Any]) -> TorchQuery:
    return TorchQuery(**{**fields, "keywords": tuple(fields["keywords"])})
