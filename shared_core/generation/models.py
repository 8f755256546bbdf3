"""What is accepted as a model: one of ours, a framework's, or a plain function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

from shared_core.checking import check_counts_of
from shared_core.generation.fingerprint import fingerprint_of, source_of

GROUP = "posrag.models"
"""Group of entry points, named after a framework's package: each loads what wraps its models.

Its `reranker` wraps the rerankers of the framework for the command, and is None of other objects.
"""

UNNAMED = "unnamed function"
"""Name of a function without one, such as a lambda."""


@runtime_checkable
class Generator(Protocol):
    """Anything that answers prompts.

    Some attributes are read where they exist. ``batch_size``: the number of prompts that one call
    of `generate` takes best. ``concurrency``: the number of calls that may be under way at once.
    Both default to 1. ``fingerprint``: what distinguishes its stored answers from another model's;
    by default the name, the source of the module of its class, and its plain public attributes. A
    change of a setting outside these is not noticed. ``count_tokens``: a function from a prompt to
    its tokens.
    """

    @property
    def name(self) -> str:
        """Name of the model, under which its profile is saved."""
        ...

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return one answer a prompt, in order, without the prompt."""
        ...


@runtime_checkable
class ScoringModel(Generator, Protocol):
    """A model that can also score a given answer; local models can."""

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> Sequence[Sequence[float]]:
        """Return, for each pair, the natural log-probability of each token of the continuation."""
        ...


@dataclass(frozen=True)
class CallableModel:
    """A plain function as a model.

    Attributes
    ----------
    function
        Takes a list of prompts and returns a list of as many answers.
    name
        Name of the model; that of the function by default.
    batch_size
        Prompts a call, >= 1.
    concurrency
        Calls at once, each in its own thread, >= 1.

    Raises
    ------
    ValueError
        If `batch_size` or `concurrency` is below 1.
    """

    function: Callable[[Sequence[str]], Sequence[str]]
    _: KW_ONLY
    name: str = ""
    batch_size: int = 8
    concurrency: int = 1

    def __post_init__(self) -> None:
        check_counts_of(self, {"batch_size": 1, "concurrency": 1})
        object.__setattr__(self, "name", self.name or _name_of(self.function))

    @cached_property
    def fingerprint(self) -> str:
        """Name, and a hash of the function's module and of the plain values that it was given.

        After a change there it is another model and is asked again. A change of what it imports,
        holds or asks is not noticed: a helper in another module or cell, the content of a list or
        an object, a server's new weights. See `source_of`.
        """
        return fingerprint_of(self.name, source_of(self.function))

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        """Return what the function returns."""
        return self.function(prompts)


def as_generator(model: object, *, name: str | None = None) -> Generator:
    """Return `model` as something that answers prompts.

    Parameters
    ----------
    model
        A `Generator`, a model of a framework that an entry point of the group ``posrag.models``
        knows (LangChain and LlamaIndex among them), or a function from a list of prompts to a
        list of answers.
    name
        Name of the model, if not its own.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if isinstance(model, type):
        raise TypeError(f"{_full_name(model)} is a class; give an instance of it, or {_ACCEPTED}")
    # Frameworks first: some of their models look like a Generator, others like a function.
    wrap = wrapper_of(type(model))
    if wrap is not None:
        return _named(wrap(model), name)
    if isinstance(model, Generator) and isinstance(model.name, str):
        return _named(model, name)
    if callable(model):
        return CallableModel(model, name=name or "")
    raise TypeError(f"a {_full_name(type(model))} is not a model; give {_ACCEPTED}")


_ACCEPTED = (
    "an object with a name and a method generate(prompts), a LangChain or LlamaIndex model, "
    "or a function from a list of prompts to a list of answers"
)


def _named(model: Generator, name: str | None) -> Generator:
    """Return the model, or a copy of it under another name."""
    if not name or name == model.name:
        return model
    renamed = copy(model)
    object.__setattr__(renamed, "name", name)  # of a frozen dataclass, too
    return renamed


def wrapper_of(kind: type) -> Any:
    """Return what wraps the models of the framework of a class, or None if there is none."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    for package in (base.__module__.partition(".")[0] for base in kind.__mro__):
        if package in points:
            return points[package].load()
    return None


def _name_of(function: object) -> str:
    """Return the name that the author of a function gave it."""
    # Without the name of the function that it is defined in.
    name: str = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    return UNNAMED if not name or "<lambda>" in name else name


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
