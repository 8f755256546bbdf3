"""What the reference shows of the code itself, whenever the site is built.

``<!-- commands -->`` on a page becomes every command with its help, ``<!-- options NAMES -->`` the
options of these classes, or functions, or of all public classes of an adapter. An option that
nothing describes is an error, and so ends the build.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import MISSING
from io import StringIO
from pydoc import locate
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from shared_core import CAUS, TwoRound, api
from shared_core.cli.main import COMMANDS, main
from shared_core.cli.reproduce import EXPERIMENTS
from shared_core.index.sparse.bm25 import BM25Options

BEHIND = (CAUS, TwoRound, BM25Options)
"""What takes the keyword arguments that are passed on."""

RESULTS = {"ExplainedNode", "GatedPrompt"}
"""Classes that nobody makes."""

SECTION = re.compile(r"^(?:Attributes|Parameters)\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.S | re.M)
ENTRY = re.compile(r"^(\S.*(?:\n\S.*)*)\n((?:    .*\n?|\n)+)", re.M)
BORROWED = re.compile(r"As (?:in|of) `(\w+)`")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with what its marks stand for."""
    markdown = markdown.replace("<!-- commands -->", "\n".join(_commands()))
    return re.sub(
        r"<!-- options (.*) -->",
        lambda mark: "\n".join(line for name in mark[1].split() for line in _described(name)),
        markdown,
    )


def _commands() -> Iterator[str]:
    os.environ["COLUMNS"] = "100"
    for command in (*COMMANDS, *(f"reproduce {experiment}" for experiment in EXPERIMENTS)):
        with redirect_stdout(StringIO()) as helped, suppress(SystemExit):
            main([*command.split(), "--help"])
        yield f"## posrag {command}\n\n```text\n{helped.getvalue()}```\n"


def _described(name: str) -> Iterator[str]:
    made: Any = locate(name)
    if isinstance(made, ModuleType):
        for each in sorted({*made.__all__} - {*api.__all__} - RESULTS):
            if inspect.isclass(getattr(made, each)):
                yield from _described(f"{name}.{each}")
        return
    yield f"### {name.rpartition('.')[2]}\n"
    yield from ("| name | type | default | what it is |", "|---|---|---|---|")
    for option, (default, kind) in _options(made).items():
        cells = (f"`{option}`", kind and f"`{kind}`", default, _told(made, option))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _options(made: Any) -> dict[str, tuple[str, str]]:
    """Return option -> default and type, of a class's own constructor or a function."""
    hints = get_type_hints(made)
    found = {
        name: (_shown(field.get_default(call_default_factory=True)), _typed(hints[name]))
        for name, field in getattr(made, "model_fields", {}).items()
        if _declared(made, name)
    }
    if found:
        return found
    hints = get_type_hints(made.__init__ if inspect.isclass(made) else made)
    for name, parameter in inspect.signature(made).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            passed = get_type_hints(get_args(hints[name])[0])
            behind = [each for each in BEHIND if passed.keys() <= each.__dataclass_fields__.keys()]
            for each, hint in passed.items():
                default = _default(behind[0], each) if behind else "optional"
                found[each] = (default, _typed(hint))
        else:
            found[name] = (_default(made, name), _typed(hints.get(name, Any)))
    return found


def _declared(made: type, name: str) -> bool:
    """Whether a field is ours, and not the framework's."""
    classes = [each for each in made.__mro__ if name in inspect.get_annotations(each)]
    return "posrag" in classes[0].__module__


def _default(made: Any, name: str) -> str:
    field = getattr(made, "__dataclass_fields__", {}).get(name)
    if field is not None and field.default_factory is not MISSING:
        return _shown(field.default_factory())
    return _shown(inspect.signature(made).parameters[name].default)


def _shown(default: object) -> str:
    """Return a default as it is written, or its kind if that is long."""
    if default is inspect.Parameter.empty or type(default).__name__ == "PydanticUndefinedType":
        return "required"
    text = repr(default)
    return f"`{text}`" if len(text) <= 30 else f"`{type(default).__name__}(...)`"


def _typed(hint: Any) -> str:
    """Return a type without its modules."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(map(_typed, get_args(hint)))
    if get_origin(hint) is Annotated:
        return _typed(get_args(hint)[0])
    if hasattr(hint, "__value__"):  # an alias of ours
        return _typed(hint.__value__)
    text = "None" if hint is type(None) else getattr(hint, "__name__", "")
    return text if inspect.isclass(hint) else re.sub(r"\b[\w.]+\.(?=\w)", "", str(hint))


def _told(made: Any, option: str) -> str:
    """Return what an option is: of the class, of one above it, or of the one that it refers to."""
    for each in (*getattr(made, "__mro__", (made,)), *BEHIND):
        if text := _texts(each).get(option):
            known = vars(api) | vars(sys.modules[each.__module__])
            other = known.get(found[1]) if (found := BORROWED.match(text)) else None
            return _told(other, option) if inspect.isclass(other) else text
    raise LookupError(f"nothing describes the option {option} of {made.__name__}")


def _texts(made: Any) -> Mapping[str, str]:
    sections = reversed(SECTION.findall(inspect.cleandoc(made.__doc__ or "") + "\n"))
    return {
        name.strip("*"): " ".join(text.split())
        for section in sections
        for names, text in ENTRY.findall(section)
        for name in re.split(r",\s*", names)
    }
