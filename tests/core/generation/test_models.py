"""What is taken for a model, and under which name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from shared_core.generation import CallableModel, Generator, ScoringModel, as_generator, models
from shared_core.generation.fingerprint import model_fingerprint


def shout(prompts: Sequence[str]) -> list[str]:
    return [prompt.upper() for prompt in prompts]


@dataclass(frozen=True)
class Plain:
    """A model of ours that generates."""

    name: str = "plain"

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        return shout(prompts)


@dataclass(frozen=True)
class Scoring(Plain):
    """One that scores, too, and says what it takes best."""

    batch_size: int = 4
    concurrency: int = 2
    fingerprint: str = "plain (greedy)"

    def log_probabilities(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> Sequence[Sequence[float]]:
        return [[-1.0] * len(text) for text in continuations]


class Foreign:
    """A framework's model: looks like one of ours, and can be called, but is neither."""

    name = "looks like one"

    def generate(self, prompts: object) -> object:
        raise AssertionError("not ours to call")

    def __call__(self, prompts: object) -> object:
        raise AssertionError("not ours to call")


Foreign.__module__ = "some_framework.models"


class Derived(Foreign):
    """Of another package, as langchain_openai's models are; its base is the framework's."""


class EntryPoint:
    def __init__(self, name: str, function: Callable[[Any], Generator] | None) -> None:
        self.name = name
        self.function = function

    def load(self) -> Callable[[Any], Generator]:
        assert self.function is not None, f"{self.name} was loaded without need"
        return self.function


@pytest.fixture(autouse=True)
def points(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """What is registered: two packages whose models nobody has here."""
    registered = [EntryPoint("langchain_core", None), EntryPoint("some", None)]
    monkeypatch.setattr(models, "entry_points", lambda *, group: registered)
    return registered


def test_a_function_is_a_model() -> None:
    """Named after itself, eight prompts a call, one call at a time."""
    model = as_generator(shout)
    assert isinstance(model, CallableModel)
    assert isinstance(model, Generator)
    assert not isinstance(model, ScoringModel)
    assert model.generate(["a", "b"]) == ["A", "B"]
    assert (model.name, model.batch_size, model.concurrency) == ("shout", 8, 1)
    assert as_generator(shout, name="mine").name == "mine"
    assert CallableModel(Plain().generate).name == "Plain.generate"


def test_what_has_no_name_is_an_unnamed_function() -> None:
    """Its source tells it from another."""
    functions = (lambda prompts: shout(prompts)), functools.partial(shout)
    models = [as_generator(function) for function in functions]
    assert [model.name for model in models] == ["unnamed function"] * 2
    assert len({*map(model_fingerprint, models)}) == 2
    assert as_generator(functions[0], name="mine").name == "mine"


def test_another_name_changes_nothing_else() -> None:
    """Not what it can do or takes best; not even of what cannot be changed."""
    for model in (Plain(), Scoring()):
        assert as_generator(model) is as_generator(model, name="plain") is model
        renamed = as_generator(model, name="mine")
        assert (renamed.name, model.name) == ("mine", "plain")
        assert type(renamed) is type(model)


@pytest.mark.parametrize("kind", [Foreign, Derived])
def test_a_frameworks_model_is_wrapped_by_its_adapter(
    kind: type[Foreign], points: list[EntryPoint]
) -> None:
    """Although it looks like ours; by the package of any base, and no other one is loaded."""
    points.append(EntryPoint("some_framework", lambda model: Scoring()))
    assert as_generator(kind()) == Scoring()
    assert as_generator(kind(), name="mine").name == "mine"


@pytest.mark.parametrize(
    ("model", "shown"),
    [("gpt", "a str"), (None, "a NoneType"), (Plain(name=None), r"a .*test_models\.Plain")],  # type: ignore[arg-type]
)
def test_anything_else_is_refused(model: object, shown: str) -> None:
    """With its type, and what would do; as a framework's model whose adapter is not installed."""
    with pytest.raises(TypeError, match=rf"^{shown} is not a model; give .*generate.*function"):
        as_generator(model)


@pytest.mark.parametrize("kind", [Plain, Foreign, dict])
def test_a_class_is_not_its_instance(kind: type) -> None:
    """It has all the attributes, and can be called."""
    with pytest.raises(TypeError, match=rf"{kind.__name__} is a class; give an instance"):
        as_generator(kind)
