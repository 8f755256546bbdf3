"""What is taken for a model, and under which name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from shared_core.generation import callables
from shared_core.generation.base import Generator, ScoringModel
from shared_core.generation.callables import CallableModel, as_generator
from shared_core.generation.identity import model_identity


def shout(prompts: Sequence[str]) -> list[str]:
    return [prompt.upper() for prompt in prompts]


@dataclass
class Plain:
    """A model of ours that generates."""

    name: str = "plain"

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        return shout(prompts)


@dataclass
class Scoring(Plain):
    """One that scores, too, and says what it takes best."""

    batch_size: int = 4
    concurrency: int = 2
    identity: str = "plain (greedy)"

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

    def entry_points(*, group: str) -> list[EntryPoint]:
        assert group == "posrag.models"
        return registered

    monkeypatch.setattr(callables, "entry_points", entry_points)
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


def test_a_name_is_what_the_author_wrote() -> None:
    """A method with its class; an inner function without the outer one."""

    def inner(prompts: Sequence[str]) -> list[str]:
        return [*prompts]

    assert CallableModel(inner).name == "inner"
    assert CallableModel(Plain().generate).name == "Plain.generate"


@pytest.mark.parametrize("nameless", [lambda prompts: [*prompts], functools.partial(shout)])
def test_what_has_no_name_needs_one(nameless: Callable[..., Any]) -> None:
    """Two lambdas must not answer for each other from one journal."""
    for take in (as_generator, CallableModel):
        with pytest.raises(
            ValueError,
            match=r"has no name .*shared_core\.generation\.CallableModel\(function, name=",
        ):
            take(nameless)
    assert as_generator(nameless, name="mine").name == "mine"
    assert as_generator(nameless, saved=False).name == "unnamed function"
    assert as_generator(shout, saved=False).name == "shout"
    assert CallableModel(nameless, name="mine").generate(["a"]) in (["a"], ["A"])


def test_an_object_that_can_be_called_needs_a_name() -> None:
    """Its class may have many of them."""

    class Client:
        def __call__(self, prompts: Sequence[str]) -> list[str]:
            return shout(prompts)

    with pytest.raises(ValueError, match="name="):
        as_generator(Client())
    assert as_generator(Client(), name="mine").generate(["a"]) == ["A"]


def test_a_model_of_ours_is_taken_as_it_is() -> None:
    for model in (Plain(), Scoring()):
        assert as_generator(model) is model
        assert as_generator(model, name=model.name) is model


def test_another_name_changes_nothing_else() -> None:
    """What it can do, takes best, and is."""
    model = as_generator(Scoring(), name="mine")
    assert isinstance(model, ScoringModel)
    assert model.name == "mine"
    assert model.generate(["a"]) == ["A"]
    assert model.log_probabilities(["a"], ["bc"]) == [[-1.0, -1.0]]
    kept = [getattr(model, name) for name in ("batch_size", "concurrency", "identity")]
    assert kept == [4, 2, "plain (greedy)"]


def test_another_name_adds_nothing_either() -> None:
    """A model that cannot score does not look as if it could."""
    model = as_generator(Plain(), name="mine")
    assert not isinstance(model, ScoringModel)
    assert model.generate(["a"]) == ["A"]
    kept = [getattr(model, name) for name in ("name", "batch_size", "concurrency", "identity")]
    own = [1, 1, model_identity(Plain())]
    assert kept == ["mine", *own], "its answers are those of the model itself"


@pytest.mark.parametrize("kind", [Foreign, Derived])
def test_a_frameworks_model_is_wrapped_by_its_adapter(
    kind: type[Foreign], points: list[EntryPoint]
) -> None:
    """Although it looks like ours; by the package of any base, and no other one is loaded."""
    given: list[object] = []

    def generator_of(model: Foreign) -> Generator:
        given.append(model)
        return Scoring()

    points.append(EntryPoint("some_framework", generator_of))
    model = kind()
    assert as_generator(model) == Scoring()
    renamed = as_generator(model, name="mine")
    assert renamed.name == "mine"
    assert isinstance(renamed, ScoringModel)
    assert given == [model, model]


def test_an_adapter_that_cannot_be_loaded_says_so(points: list[EntryPoint]) -> None:
    """The model is not taken for something else instead."""

    def broken(_: object) -> Generator:
        raise ImportError("no adapter")

    points.append(EntryPoint("some_framework", broken))
    with pytest.raises(ImportError, match="no adapter"):
        as_generator(Foreign())


@pytest.mark.parametrize(
    ("model", "shown"),
    [("gpt", "a str"), (None, "a NoneType"), (5, "a int"), (object(), "a object")],
)
def test_anything_else_is_refused(model: object, shown: str) -> None:
    """With its type, and what would do."""
    with pytest.raises(TypeError, match=rf"^{shown} is not a model; give .*generate.*function"):
        as_generator(model)


def test_a_model_without_a_name_is_refused() -> None:
    """As a framework's is whose adapter is not installed."""
    with pytest.raises(TypeError, match=r"test_callables\.Plain is not a model"):
        as_generator(Plain(name=None))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Plain, Foreign, dict])
def test_a_class_is_not_its_instance(kind: type) -> None:
    """It has all the attributes, and can be called."""
    with pytest.raises(TypeError, match=rf"{kind.__name__} is a class; give an instance"):
        as_generator(kind)
